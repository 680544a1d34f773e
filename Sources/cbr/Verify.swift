// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

extension Command {
  /// Says whether a history is as it was written.
  static func verify(_ arguments: Arguments) throws -> Ending {
    let (path, anchor) = try operands(of: arguments)
    let reader = try Reader(path)
    guard var verification = Verification(anchor: anchor) else {
      throw Problem(
        sentence: "libcrypto is needed, and cannot be loaded",
        ending: .failed)
    }
    defer { verification.end() }
    let last =
      try reader.rows("SELECT max(block) FROM block").first?.first ?? "0"
    let isTerminal = isatty(STDERR_FILENO) == 1
    try verification.verify(reader) { block in
      if isTerminal, block % 256 == 0 {
        tell("\rblock \(block) of \(last)")
      }
    }
    if isTerminal { tell("\r\u{1B}[K") }
    if arguments.isJSON { printJSON(verification) } else { say(verification) }
    return verification.problems.isEmpty ? .done : .notFound
  }

  private static func operands(
    of arguments: Arguments
  ) throws -> (path: String, anchor: String?) {
    var words = Array(arguments.words.dropFirst())
    var anchor: String?
    if let index = words.firstIndex(of: "--anchor"), index + 1 < words.count {
      anchor = words[index + 1].lowercased()
      words.removeSubrange(index...index + 1)
    }
    guard words.count == 1, !words[0].hasPrefix("--") else {
      throw Problem(
        sentence: "usage: cbr verify [--anchor ROOT] PATH", ending: .usage)
    }
    return (words[0], anchor)
  }

  private static func say(_ verification: Verification) {
    for sentence in verification.sentences { print(sentence) }
    if verification.problems.isEmpty {
      print(
        """
        intact: \(verification.blocks) blocks, \(verification.rows) rows, \
        head \(hexadecimal(verification.head))
        """)
    }
    if verification.uncovered > 0 {
      print("in no block yet: \(verification.uncovered) deletions by rule")
    }
  }

  private static func printJSON(_ verification: Verification) {
    let problems = verification.sentences.map { json($0) }
    print(
      """
      {"intact": \(verification.problems.isEmpty), \
      "problems": [\(problems.joined(separator: ", "))], \
      "blocks": \(verification.blocks), "rows": \(verification.rows), \
      "head": "\(hexadecimal(verification.head))", \
      "deletions_in_no_block_yet": \(verification.uncovered)}
      """)
  }

  private static func tell(_ text: String) {
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
  }
}
