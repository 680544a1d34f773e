// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite
import CallbackRegistry
import Glibc

// What is said of the machine: the database library, and the clock.
extension Command {
  static func sqlite() -> Finding {
    let version = String(cString: sqlite3_libversion())
    guard hasLogResetRace(sqlite3_libversion_number()) else {
      return .ok("SQLite", version)
    }
    return .notice(
      "SQLite",
      """
      \(version), by whose number a checkpoint can lose what another \
      connection commits at that moment (3.7.0 to 3.51.2: \
      sqlite.org/wal.html#walresetbug)
      """,
      remedy: """
        none, while only this library writes the history: one of its \
        programs at a time does; else install 3.51.3
        """)
  }

  /// Fixed in 3.51.3, and in 3.44.6 and 3.50.7 for those who stay behind.
  private static func hasLogResetRace(_ number: Int32) -> Bool {
    switch number {
    case 3_044_006..<3_045_000, 3_050_007..<3_051_000: false
    default: 3_007_000..<3_051_003 ~= number
    }
  }

  static func clock() -> Finding {
    _ = Process.currentThread()
    let source =
      line(
        of: """
          /sys/devices/system/clocksource/clocksource0/current_clocksource
          """) ?? "unknown"
    if cbr_counter_is_trusted() {
      return .ok("clock", "\(source): calls are timed by its counter")
    }
    return .notice(
      "clock",
      "\(source): calls are timed by clock_gettime, which takes longer",
      remedy: "none, unless the kernel can keep time by tsc")
  }

  /// The first line of a small file.
  static func line(of path: String) -> String? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var text = [CChar](repeating: 0, count: 256)
    guard fgets(&text, 256, file) != nil else { return nil }
    let all = text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    return all.split(separator: "\n").first.map { String($0) }
  }
}
