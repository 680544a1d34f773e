// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

/// How bytes become what the command is given. The first one, less 128 for an
/// answer in JSON, says:
///
///     0   lines that are the words of a command line; H is a history
///     1   a token to explain
///     2   changes of a history: three bytes of an offset, a number of bytes,
///         and these; all commands are to cope with it
///     3   a history's bytes
enum CommandTarget {
  private static let seed = Seed()
  private static let folder: Folder = {
    let folder = Folder()
    atexit { CommandTarget.end() }
    // What the commands print is not for anybody.
    let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
    guard chdir(folder.path) == 0, dup2(nowhere, STDOUT_FILENO) >= 0 else {
      fatalError("no place to be")
    }
    return folder
  }()

  private static func end() { folder.remove() }

  static func run(_ input: [UInt8]) {
    let mode = input.first ?? 0
    let rest = input.dropFirst()
    let options = mode & 128 != 0 ? ["--json"] : []
    folder.removeFiles()
    switch mode & 3 {
    case 0:
      folder.write(seed.history, to: "history")
      run(words(rest) + options)
    case 1:
      folder.write(seed.history, to: "history")
      let token = String(decoding: rest, as: UTF8.self)
      run(["explain", token, "history"] + options)
    case 2: runAll(on: changed(rest), options)
    default: runAll(on: Array(rest), options)
    }
  }

  /// Without ways out of the folder, or commands that have no end.
  private static func words(_ input: ArraySlice<UInt8>) -> [String] {
    input.split(separator: 10, maxSplits: 8).map { bytes in
      let word = bytes.filter { $0 != UInt8(ascii: "/") && $0 != 0 }
      return String(decoding: word, as: UTF8.self)
    }
    .filter { $0 != "-f" }
    .map { $0 == "H" ? "history" : $0 }
  }

  private static func changed(_ input: ArraySlice<UInt8>) -> [UInt8] {
    var bytes = seed.history
    var input = input
    while input.count > 4 {
      let offset =
        input.prefix(3).reduce(0) { $0 << 8 | Int($1) } % bytes.count
      let count = Int(input[input.startIndex + 3])
      input = input.dropFirst(4)
      let new = input.prefix(min(count, bytes.count - offset))
      bytes.replaceSubrange(offset..<(offset + new.count), with: new)
      input = input.dropFirst(new.count)
    }
    return bytes
  }

  private static func runAll(on history: [UInt8], _ options: [String]) {
    folder.write(history, to: "history")
    for command in ["doctor", "stat", "tail", "verify"] {
      run([command, "history"] + options)
      guard folder.files == ["history"], Folder.read("history") == history
      else { fatalError("\(command) has changed something") }
    }
    run(["snapshot", "history", "copy"] + options)
    run(["salvage", "history", "rest"] + options)
    run(["explain", seed.token, "history"] + options)
    run(["recover", "history"] + options)
  }

  private static func run(_ words: [String]) {
    do { _ = try Command.run(Arguments(words)) } catch {
      guard error is Problem else { fatalError("\(words): \(error)") }
    }
  }
}

@c(fuzz_command)
package func fuzzCommand(_ bytes: UnsafePointer<UInt8>, _ count: Int) {
  CommandTarget.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
}
