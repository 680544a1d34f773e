// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

// What is said of the processes that have written a history, and of their
// rings.
extension Command {
  static func ringFiles(_ rings: RingDirectory, of path: String) -> Finding {
    let name = "ring files"
    if let obstacle = rings.obstacle {
      return .problem(
        name, "\(path).rings cannot be read: \(obstacle)",
        remedy: "run this as the user whose programs write the history")
    }
    let kinds: [(RingDirectory.State, String, String?)] = [
      (.live, "of live processes", nil),
      (
        .dead, "of dead processes, to be recovered",
        "\"cbr recover \(path)\" takes them over"
      ),
      (
        .damaged, "of dead processes, not to be read",
        "\"cbr recover \(path)\" sets them aside"
      ),
      (
        .setAside, "set aside",
        "see the table fault; keep or remove the files set aside"
      ),
      (
        .closed, "which you may not read",
        "run this as the user whose programs write the history"
      ),
      (
        .missing, "not where they were",
        """
        if they are on a disk that is not mounted, mount it, and \
        "cbr recover \(path)"; else see the table fault
        """
      ),
      (
        .junk, "of nobody",
        "remove from \(path).rings what is not the library's"
      ),
    ]
    let there = kinds.filter { rings.count($0.0) > 0 }
    if there.isEmpty { return .ok(name, "none") }
    let sentence = there.map { "\(rings.count($0.0)) \($0.1)" }
    let remedies = there.compactMap { $0.2 }
    if remedies.isEmpty { return .ok(name, sentence.joined(separator: ", ")) }
    return .notice(
      name, sentence.joined(separator: ", "),
      remedy: remedies.joined(separator: "; "))
  }

  /// What is recorded and not yet in the history.
  static func lag(
    _ rings: RingDirectory, _ facts: Facts, of path: String
  ) -> Finding {
    let live = behind(rings, .live, facts)
    let dead = behind(rings, .dead, facts)
    let sentence = "\(live) records of live processes are yet to be written"
    if dead == 0 { return .ok("lag", sentence) }
    return .notice(
      "lag", "\(sentence), \(dead) of dead ones",
      remedy: "\"cbr recover \(path)\" writes them")
  }

  private static func behind(
    _ rings: RingDirectory, _ state: RingDirectory.State, _ facts: Facts
  ) -> UInt64 {
    var records: UInt64 = 0
    for file in rings.files where file.state == state {
      for (number, head) in file.heads {
        let consumed =
          facts.consumed[Facts.Ring(run: file.run, number: number)] ?? 0
        // A number that nobody can have counted to is not believed.
        if head > consumed, head - consumed < 1 << 32 {
          records += head - consumed
        }
      }
    }
    return records
  }

  /// Runs that have not ended, and whether they still go on.
  static func runs(
    _ facts: Facts, _ rings: RingDirectory, of path: String
  ) -> Finding {
    let live = Set(rings.files.lazy.filter { $0.state == .live }.map(\.run))
    let dead = Set(rings.files.lazy.filter { $0.state == .dead }.map(\.run))
    let stale = facts.open.filter { run in
      dead.contains(run.identifier)
        || !live.contains(run.identifier) && !mayLive(run)
    }
    if stale.isEmpty {
      return .ok("runs", "\(facts.open.count) that go on")
    }
    let names = stale.prefix(5).map { "\($0.number) (process \($0.process))" }
    let more = stale.count > 5 ? " and \(stale.count - 5) more" : ""
    return .notice(
      "runs",
      """
      not ended, and gone: run \(names.joined(separator: ", "))\(more)
      """,
      remedy: """
        "cbr recover \(path)" says how they ended, if their rings are there; \
        else it is not known
        """)
  }

  /// Whether a run that has no rings may go on: here, or on a machine that
  /// cannot be asked.
  private static func mayLive(_ run: Facts.Run) -> Bool {
    var boot = [CChar](repeating: 0, count: 64)
    var host = [CChar](repeating: 0, count: 256)
    cbr_boot_identity(&boot, boot.count)
    cbr_host_name(&host, host.count)
    if run.host != text(host) { return true }
    guard run.boot == text(boot) else { return false }
    return run.process > 0 && (kill(run.process, 0) == 0 || errno == EPERM)
  }

  private static func text(_ characters: [CChar]) -> String {
    characters.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }
}
