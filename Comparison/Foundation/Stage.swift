// SPDX-License-Identifier: Apache-2.0

/// Where sessions are made.
protocol Stage: Sendable {
  func open(_ delegate: Delegate) -> any Session
}

/// A session without a hold on its delegate of its own.
protocol Session: Sendable {
  /// Begins a task, and says by whom it was refused, if it was.
  func begin(_ work: Work) -> String?
  func finish()
  func cancel()
}

/// What a task's peer sends: a response, then pieces of data.
struct Work {
  var pieces: Int
  var bytes = 1000
  var milliseconds: UInt32 = 0  // between two pieces

  /// Longer than anybody waits.
  static let long = Work(pieces: 400, milliseconds: 20)
  static let short = Work(pieces: 10, milliseconds: 20)
}

/// Lets a task's data flow or cancels it, and says how that was refused.
typealias Reply = @Sendable (_ allow: Bool) -> String?

/// What a session tells: r response, d data, c complete, x cancelled, f failed
/// otherwise, i invalid.
final class Delegate: Sendable {
  let told: Told
  private let hooks: Hooks

  struct Hooks: Sendable {
    var response: @Sendable (@escaping Reply) -> Void = { _ = $0(true) }
    var data: @Sendable (_ cancel: @Sendable () -> Void) -> Void = { _ in }
    var complete: @Sendable () -> Void = {}
  }

  init(_ told: Told, _ hooks: Hooks = Hooks()) {
    self.told = told
    self.hooks = hooks
  }

  func response(_ reply: @escaping Reply) {
    told.add("r")
    hooks.response(reply)
  }

  func data(cancel: @Sendable () -> Void) {
    told.add("d")
    hooks.data(cancel)
  }

  func complete(_ letter: Character) {
    told.add(letter)
    hooks.complete()
  }

  func invalid() {
    told.add("i")
  }
}

extension Told {
  /// The ends that have been told of, in order: "cancelled, invalid (2)".
  var ends: String {
    let names: [Character: String] = [
      "c": "complete", "x": "cancelled", "f": "failed", "i": "invalid",
    ]
    var runs: [(name: String, count: Int)] = []
    for name in text.compactMap({ names[$0] }) {
      if runs.last?.name == name {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((name, 1))
      }
    }
    if runs.isEmpty { return "nothing" }
    return runs.map { $0.count == 1 ? $0.name : "\($0.name) (\($0.count))" }
      .joined(separator: ", ")
  }

  /// How often there was which end, and which was the last.
  var countedEnds: String {
    let completed = count("c") > 0 ? "complete" : "cancelled"
    let last = text.last == "i" ? "invalid" : completed
    return "\(completed) \(count("c") + count("x"))\u{D7}; "
      + "invalid \(count("i"))\u{D7}; last: \(last)"
  }
}
