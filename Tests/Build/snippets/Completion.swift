final class Loader: Sendable {
  func load(_ done: @escaping @Sendable ([UInt8]) -> Void) {}
}
let oldLoader = Loader()
