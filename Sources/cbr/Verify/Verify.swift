// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

extension Command {
  /// Says whether a history is as it was written.
  static func verify(_ arguments: Arguments) throws -> Ending {
    let operands = try VerifyOperands(arguments)
    let reader = try Reader.open(operands.path)
    let made = Verification(anchor: operands.anchor, key: operands.key)
    guard var verification = made else {
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
    try reader.checkSteady()
    if arguments.isJSON { printJSON(verification) } else { say(verification) }
    return verification.problems.isEmpty ? .done : .negative
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
    if let seals = verification.seals {
      print("sealed: \(seals.sealed) blocks, from block \(seals.first) on")
    }
  }

  private static func printJSON(_ verification: Verification) {
    let problems = verification.sentences.map { json($0) }
    let sealed =
      verification.seals.map { ", \"sealed\": \($0.sealed)" } ?? ""
    print(
      """
      {"intact": \(verification.problems.isEmpty), \
      "problems": [\(problems.joined(separator: ", "))], \
      "blocks": \(verification.blocks), "rows": \(verification.rows), \
      "head": "\(hexadecimal(verification.head))", \
      "deletions_in_no_block_yet": \(verification.uncovered)\(sealed)}
      """)
  }

  private static func tell(_ text: String) {
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
  }
}

/// What the words of `verify` mean.
private struct VerifyOperands {
  let path: String
  let anchor: String?
  let key: VerificationKey?

  init(_ arguments: Arguments) throws {
    var words = Array(arguments.words.dropFirst())
    anchor = Self.value(of: "--anchor", in: &words)?.lowercased()
    let seal = Self.value(of: "--seal", in: &words)
    guard words.count == 1, !words[0].hasPrefix("--") else {
      throw Problem(
        sentence: "usage: cbr verify [--anchor ROOT] [--seal BLOCK:KEY] PATH",
        ending: .usage)
    }
    key = seal.flatMap { VerificationKey($0) }
    guard key != nil || seal == nil else {
      throw Problem(
        sentence: """
          that is no key of a seal: it is a block's number, a colon and \
          \(2 * SealKey.bytes) hexadecimal digits
          """, ending: .usage)
    }
    path = words[0]
  }

  private static func value(
    of option: String, in words: inout [String]
  ) -> String? {
    guard let index = words.firstIndex(of: option), index + 1 < words.count
    else { return nil }
    defer { words.removeSubrange(index...index + 1) }
    return words[index + 1]
  }
}
