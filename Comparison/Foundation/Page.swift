// SPDX-License-Identifier: Apache-2.0
import CCallbackRegistry
import Foundation

/// Documentation/FoundationComparison.md.
struct Page {
  private let found: [(foundation: Outcome, ours: Outcome)]
  private let foundation = "Foundation of Swift \(swiftVersion) on \(machine)"
  private let ours = "CallbackRegistry " + String(cString: cbr_version())

  init(_ found: [(foundation: Outcome, ours: Outcome)]) {
    self.found = found
  }

  var text: String {
    """
    <!-- SPDX-License-Identifier: Apache-2.0 -->
    # Notifications and sessions, here and in Foundation

    Each row is one script, run with the same words on `NotificationCenter` or
    `URLSession`, and on this library's signals or sessions by its C API
    (`Comparison/Foundation`). Each cell is what came of it when it was run.
    `make compare-foundation` runs them and writes this page. What is expected
    here follows from the header (G20, G23 to G28), and the program fails if it
    does not come; what Foundation does is only told, and need not be wrong by
    its own documentation. Nothing is said of other versions and other systems.

    It was the Foundation that comes with Swift \(swiftVersion), on
    \(machine), \(distribution).

    Every run is a process of its own, with thirty seconds to end: "traps" and
    "hangs" are outcomes, too. Where runs differ, a cell says "varies", and
    part by part what was seen in 5 runs, or in 40 where threads race. There
    may be more than was seen.

    ## Notifications

    A handler is added for one sender, with a block and no queue. Here the
    sender is the owner of a signal; an object that dies says so in its deinit
    (`cbr_object_died`), and what was added for its sake ends with it.

    \(notifications)
    ## Sessions

    The peer of a `URLSession` is an HTTP server on the loopback interface;
    here it is a thread that gives each task what that server would send.
    "Complete" is didComplete without an error, "cancelled" with that one,
    "invalid" is didBecomeInvalid: with how often each was told in five
    seconds, and which was the last; or in their order, with a number for
    several in a row. Sessions that are ended have one task, which has had its
    first data, unless it says otherwise. "Answered" is the completion handler
    of didReceive response there, and `cbr_reply_send` here.

    \(sessions)
    """
  }

  var tables: String { notifications + "\n" + sessions }

  private var notifications: String {
    table("a handler that is, or", 0..<centreScripts.count)
  }

  private var sessions: String {
    table("a session or a task", centreScripts.count..<scripts.count)
  }

  private func table(_ title: String, _ numbers: Range<Int>) -> String {
    let head = [title, foundation, ours, "differ"]
    return ([head, head.map { _ in "---" }] + numbers.map(row))
      .map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
  }

  private func row(_ number: Int) -> [String] {
    let (its, our) = found[number]
    let same = its == our ? "no" : "yes"
    return [
      scripts[number].name, its.cell, our.cell,
      its.texts.count > 1 && its.texts.contains(our.cell) ? "at times" : same,
    ]
  }

  /// Says where our side is not as the header says; counts scripts.
  func judge() -> (passed: Int, failed: Int) {
    let wrong = zip(scripts, found).filter { $0.expected != $1.ours.cell }
    for (script, outcomes) in wrong {
      print("\(ours): \(script.name): \(outcomes.ours.cell)")
      print("  instead of: \(script.expected)")
    }
    return (scripts.count - wrong.count, wrong.count)
  }

  /// The rows of a page's tables, heads included.
  static func rows(at path: String) throws -> [[String]] {
    try String(contentsOfFile: path, encoding: .utf8)
      .split(separator: "\n").filter { $0.hasPrefix("| ") }
      .map { $0.dropFirst(2).dropLast(2).components(separatedBy: " | ") }
  }

  /// Says how this differs from the rows of a page, and returns whether those
  /// may stay.
  ///
  /// What has varied may be anything.
  func compare(with published: [[String]]) -> Bool {
    let known = Dictionary(published.map { ($0[0], $0) }) { first, _ in first }
    let names = Set(published.map { $0[0] })
    var theSame = scripts.allSatisfy { names.contains($0.name) }
    if !theSame { print("the page has other scripts; write it again") }
    let sameFoundation = published.first?[1] == foundation
    if !sameFoundation {
      print("\(foundation) skipped: another one is published")
    }
    for (number, script) in scripts.enumerated() {
      guard let row = known[script.name] else { continue }
      let (its, our) = found[number]
      if our.cell != row[2] {
        theSame = false
        print("\(script.name): \(our.cell), published: \(row[2])")
      }
      guard sameFoundation, its.cell != row[1], !row[1].hasPrefix("varies: ")
      else { continue }
      print("Foundation, \(script.name): \(its.cell), published: \(row[1])")
      // One outcome more of a race is no reason to fail.
      if !script.races { theSame = false }
    }
    return theSame
  }
}

/// The version of the compiler at hand, which Foundation comes with.
private let swiftVersion: String = {
  let words = output(of: ["swiftc", "--version"]).split(separator: " ")
  guard let at = words.firstIndex(of: "version"), at + 1 < words.count else {
    return "an unknown version"
  }
  return String(words[at + 1])
}()

/// The system and the processor: "Linux x86_64".
private let machine = output(of: ["uname", "-sm"])

private let distribution: String = {
  let lines = try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)
  let name = lines?.split(separator: "\n")
    .first { $0.hasPrefix("PRETTY_NAME=") }
  return name?.dropFirst(12).trimmingCharacters(in: ["\""])
    ?? "an unknown distribution"
}()

private func output(of command: [String]) -> String {
  let child = Process()
  child.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  child.arguments = command
  child.standardError = FileHandle.nullDevice
  let pipe = Pipe()
  child.standardOutput = pipe
  do {
    try child.run()
  } catch {
    return "unknown"
  }
  let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
  child.waitUntilExit()
  return String(decoding: bytes, as: UTF8.self)
    .trimmingCharacters(in: .whitespacesAndNewlines)
}
