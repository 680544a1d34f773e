// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

enum Side: String {
  case foundation
  case ours
}

/// What came of a script on one side.
struct Outcome: Equatable {
  /// One, or several where it varied between runs.
  var texts: [String]

  /// The cell of a table; what varied is gathered for each part of the text,
  /// where it has the same parts in all runs.
  var cell: String {
    if texts.count == 1 { return texts[0] }
    let parts = texts.map { $0.components(separatedBy: "; ") }
    guard Set(parts.map(\.count)).count == 1 else {
      return "varies: " + texts.joined(separator: " / ")
    }
    return "varies: "
      + parts[0].indices.map { at in gathered(parts.map { $0[at] }) }
      .joined(separator: "; ")
  }

  /// Says "invalid 1 or 2" for "invalid 1" and "invalid 2".
  private func gathered(_ parts: [String]) -> String {
    let different = Set(parts).sorted()
    let words = different.map { $0.components(separatedBy: " ") }
    guard different.count > 1, Set(words.map { $0.dropLast() }).count == 1
    else { return different.joined(separator: " / ") }
    let start = words[0].dropLast().joined(separator: " ")
    let ends = words.compactMap(\.last).joined(separator: " or ")
    return start + " " + ends
  }
}

/// Runs a script in this process, which has a time to end, and tells what came
/// of it.
func runHere(_ number: Int, on side: Side) -> Never {
  alarm(30)
  var none = rlimit(rlim_cur: 0, rlim_max: 0)
  setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
  let script = scripts[number]
  print(side == .ours ? script.ours() : script.foundation())
  fflush(nil)
  _exit(0)
}

/// Runs a script in a process of its own.
private func run(_ number: Int, on side: Side) -> String {
  let child = Process()
  child.executableURL = URL(fileURLWithPath: "/proc/self/exe")
    .resolvingSymlinksInPath()
  child.arguments = ["--run", String(number), side.rawValue]
  // A proxy would be asked for what is on this machine, and a trap would be
  // told at length.
  child.environment = ProcessInfo.processInfo.environment.filter {
    !$0.key.lowercased().hasSuffix("_proxy")
  }.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
  child.standardInput = FileHandle.nullDevice
  child.standardError = FileHandle.nullDevice
  let output = Pipe()
  child.standardOutput = output
  do {
    try child.run()
  } catch {
    return "cannot be run: \(error)"
  }
  let told = output.fileHandleForReading.readDataToEndOfFile()
  child.waitUntilExit()
  if child.terminationReason == .exit {
    return String(decoding: told, as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }
  switch child.terminationStatus {
  case SIGALRM: return "hangs"
  case SIGILL, SIGTRAP: return "traps"
  case let signal: return "crashes: " + String(cString: strsignal(signal))
  }
}

/// Runs all scripts so many times on each side, and those in which threads
/// race more often; several at once, since they mostly wait.
func runAll(times: Int, races: Int) -> [(foundation: Outcome, ours: Outcome)] {
  let jobs = scripts.indices.flatMap { number in
    [Side.foundation, .ours].flatMap { side in
      (0..<(scripts[number].races ? races : times)).map { _ in (number, side) }
    }
  }
  let next = Atomic(0)
  let found = Mutex(
    [(foundation: Set<String>, ours: Set<String>)](
      repeating: ([], []), count: scripts.count))
  let finished = DispatchGroup()
  for _ in 0..<12 {
    finished.enter()
    Thread.detachNewThread {
      defer { finished.leave() }
      while true {
        let job = next.add(1, ordering: .relaxed).oldValue
        guard job < jobs.count else { return }
        let (number, side) = jobs[job]
        let text = run(number, on: side)
        found.withLock {
          switch side {
          case .foundation: _ = $0[number].foundation.insert(text)
          case .ours: _ = $0[number].ours.insert(text)
          }
        }
      }
    }
  }
  finished.wait()
  return found.withLock { $0 }.map {
    (Outcome(texts: $0.sorted()), Outcome(texts: $1.sorted()))
  }
}
