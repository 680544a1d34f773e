// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
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
    guard paths.count == 1, !paths[0].hasPrefix("-"),
      output == nil || !printsFlags
    else { throw guardUsage }
    let description = try guardDescription(paths[0])
    let text =
      printsFlags
      ? description.wrapped.map { "-Wl,--wrap=\($0)" }
        .joined(separator: " ") + "\n"
      : GuardSource(description, output: output ?? "guard.c").text
    if let output {
      guard FileIdentity(of: output) != FileIdentity(of: paths[0]) else {
        throw Problem(
          sentence: "\(output): this is the description; name another file",
          ending: .failed)
      }
      try write(text, to: fopen(output, "we"), output)
    } else {
      try write(text, to: fdopen(dup(STDOUT_FILENO), "w"), "standard output")
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
    guard ferror(file) == 0 else {
      throw Problem(
        sentence: "\(path): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
    // The mark that some editors begin a text with.
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
    guard !bytes.contains(0),
      let text = String(validating: bytes, as: UTF8.self)
    else {
      throw Problem(
        sentence: "\(path): this is no text; give it a description",
        ending: .failed)
    }
    return text
  }

  private static func write(
    _ text: String, to file: UnsafeMutablePointer<FILE>?, _ name: String
  ) throws {
    guard let file, fputs(text, file) >= 0, fclose(file) == 0 else {
      throw Problem(
        sentence: "\(name): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
  }
}
