@MainActor final class Label: Sendable {
  var text = ""
}
let label: Label = missing()
