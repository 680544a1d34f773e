// SPDX-License-Identifier: Apache-2.0

// What is said of the record itself, by its view `health`.
extension Command {
  static func protection(_ facts: Facts) -> Finding {
    let name = "crash protection"
    switch facts.health[name] {
    case "on": return .ok(name, "on")
    case "in part":
      return .notice(
        name, "in part: the disk had no room for the events of some thread",
        remedy: "make room beside the history, or open it with less ring_bytes")
    case nil, "": return .ok(name, "nobody has opened the history yet")
    case let word?:
      return .notice(
        name, "\(word): what is not yet written dies with the process",
        remedy: """
          see the table fault; let programs make files in the history's \
          directory
          """)
    }
  }

  static func losses(_ facts: Facts) -> Finding {
    let lost = facts.number("events lost")
    if lost == 0 { return .ok("losses", "no event was lost") }
    return .notice(
      "losses", "\(lost) events happened and are not in the history",
      remedy: "see the view losses for when and why; more ring_bytes help")
  }

  static func faults(_ facts: Facts) -> Finding {
    let faults = facts.number("faults")
    if faults == 0 { return .ok("faults", "none") }
    return .notice(
      "faults", "there were \(faults) times when not all could be written",
      remedy: "see the table fault for when and why")
  }

  static func conservation(_ facts: Facts) -> Finding {
    let differences = facts.number("differences in conservation")
    let sentence = "\(differences) accounts of the view do not hold"
    if differences == 0 {
      return .ok("conservation", "every attempt to call is accounted for")
    }
    if facts.number("events lost") > 0 {
      return .notice(
        "conservation", sentence, remedy: "none; lost events can do that")
    }
    return .problem(
      "conservation", sentence,
      remedy: """
        keep a snapshot and report it: it is a fault of the library, or \
        somebody has changed the file
        """)
  }

  static func violations(_ facts: Facts) -> Finding {
    let violations = facts.number("violations")
    if violations == 0 { return .ok("violations", "none") }
    return .problem(
      "violations", "\(violations) things that must never be",
      remedy: """
        keep a snapshot and report it: it is a fault of the library, or \
        somebody has changed the file
        """)
  }

  /// Off is a choice; any word but on and off is worth a look.
  static func tamperEvidence(_ facts: Facts) -> Finding {
    let name = "tamper evidence"
    guard let word = facts.health[name] else {
      return .ok(name, "unknown to this history")
    }
    if word.hasPrefix("on") || word.hasPrefix("off") { return .ok(name, word) }
    return .notice(name, word, remedy: "see the view health")
  }
}
