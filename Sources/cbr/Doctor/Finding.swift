// SPDX-License-Identifier: Apache-2.0

/// How bad something is.
enum Verdict: String {
  case ok
  /// Worth knowing; the history is sound.
  case notice
  /// Something is wrong, or soon will be.
  case problem
}

/// One thing that was looked at.
struct Finding {
  let name: String
  let verdict: Verdict
  let sentence: String
  let remedy: String?

  static func ok(_ name: String, _ sentence: String) -> Finding {
    Finding(name: name, verdict: .ok, sentence: sentence, remedy: nil)
  }

  static func notice(
    _ name: String, _ sentence: String, remedy: String
  ) -> Finding {
    Finding(name: name, verdict: .notice, sentence: sentence, remedy: remedy)
  }

  static func problem(
    _ name: String, _ sentence: String, remedy: String
  ) -> Finding {
    Finding(name: name, verdict: .problem, sentence: sentence, remedy: remedy)
  }

  var asJSON: String {
    """
    {"name": \(json(name)), "verdict": \(json(verdict.rawValue)), \
    "finding": \(json(sentence)), \
    "remedy": \(remedy.map { json($0) } ?? "null")}
    """
  }

  /// A line, and the remedy in another.
  func print(width: Int) {
    let gap = String(repeating: " ", count: width - name.count)
    let word = verdict.rawValue
    let after = String(repeating: " ", count: 7 - word.count)
    Swift.print("\(word)\(after)  \(name)\(gap)  \(sentence)")
    if let remedy {
      let indent = String(repeating: " ", count: width + 11)
      Swift.print("\(indent)remedy: \(remedy)")
    }
  }
}
