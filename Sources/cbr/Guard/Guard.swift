// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
  /// Writes a guard in C, by the description of a library.
  static func makeGuard(_ arguments: Arguments) throws -> Ending {
    var paths: [String] = []
    var output: String?
    var printsFlags = false
    var words = arguments.words.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "-o":
        output = words.popFirst()
        if output == nil { throw guardUsage }
      case "--wrap": printsFlags = true
      default: paths.append(word)
      }
    }
    guard paths.count == 1, !paths[0].hasPrefix("-") else { throw guardUsage }
    let description = try guardDescription(paths[0])
    let text =
      printsFlags
      ? description.wrapped.map { "-Wl,--wrap=\($0)" }
        .joined(separator: " ") + "\n"
      : GuardSource(description, output: output ?? "guard.c").text
    if let output, !printsFlags {
      try write(text, to: output)
    } else {
      print(text, terminator: "")
    }
    return .done
  }

  private static let guardUsage = Problem(
    sentence: "usage: cbr guard DESCRIPTION [-o FILE | --wrap]",
    ending: .usage)

  private static func guardDescription(
    _ path: String
  ) throws -> GuardDescription {
    let parser = GuardParser(try content(of: path), path: path)
    let checks = GuardChecks(parser.description, parser.faults)
    guard checks.faults.isEmpty else {
      throw Problem(sentence: checks.faults.text(path), ending: .negative)
    }
    return parser.description
  }

  private static func content(of path: String) throws -> String {
    guard let file = fopen(path, "re") else {
      throw Problem(
        sentence: "\(path): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    while case let byte = getc(file), byte != EOF {
      bytes.append(UInt8(truncatingIfNeeded: byte))
    }
    guard ferror(file) == 0, !bytes.contains(0),
      let text = String(validating: bytes, as: UTF8.self)
    else {
      throw Problem(
        sentence: "\(path): this is no text; give it a description",
        ending: .failed)
    }
    return text
  }

  private static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "we"),
      fputs(text, file) >= 0, fclose(file) == 0
    else {
      throw Problem(
        sentence: "\(path): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
  }
}
