// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

extension Command {
  /// Looks for what is wrong with a history or around it, and writes nothing.
  static func doctor(_ arguments: Arguments) throws -> Ending {
    let path = try arguments.values("PATH")[0]
    let findings = try examine(path)
    let isSound = !findings.contains { $0.verdict == .problem }
    if arguments.isJSON {
      print(
        """
        {"sound": \(isSound), "findings": [\
        \(findings.map(\.asJSON).joined(separator: ", "))]}
        """)
    } else {
      let width = findings.map(\.name.count).max() ?? 0
      for finding in findings { finding.print(width: width) }
    }
    return isSound ? .done : .negative
  }

  private static func examine(_ path: String) throws -> [Finding] {
    var facts = try Reader.reading(path) { try Facts($0, of: path) }
    // After the history, so that no ring is behind what was read of it.
    var rings = RingDirectory(of: path, places: facts.places)
    if rings.count(.missing) > 0 {
      // Their runs may have ended in between.
      facts = try Reader.reading(path) { try Facts($0, of: path) }
      rings = RingDirectory(of: path, places: facts.places)
    }
    return [
      sqlite(), clock(), fileSystem(of: path), freeSpace(of: path),
      log(of: path), ringFiles(rings, of: path), lag(rings, facts, of: path),
      runs(facts, rings, of: path), protection(facts), losses(facts),
      faults(facts), conservation(facts), violations(facts),
      tamperEvidence(facts),
    ]
  }
}
