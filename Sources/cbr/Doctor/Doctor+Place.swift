// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

// What is said of the place where a history is.
extension Command {
  static func fileSystem(of path: String) -> Finding {
    let name = "file system"
    var found = statfs()
    guard statfs(path, &found) == 0 else {
      return .notice(
        name, "it does not say: \(String(cString: strerror(errno)))",
        remedy: "none")
    }
    let type = UInt32(truncatingIfNeeded: found.f_type)
    guard let known = FileSystem.known[type] else {
      return .ok(name, "type 0x\(String(type, radix: 16))")
    }
    switch known.kind {
    case .local: return .ok(name, known.name)
    case .network:
      return .problem(
        name,
        """
        \(known.name), a network file system, where a write-ahead log may be \
        damaged
        """,
        remedy: "close the history and move it to a local file system")
    case .unknown:
      return .notice(
        name, "\(known.name), behind which there may be a network",
        remedy: "if there is, move the history to a local file system")
    case .memory:
      return .notice(
        name, "\(known.name), which is empty after a restart of the machine",
        remedy: "move the history to a disk if it is to last")
    }
  }

  static func freeSpace(of path: String) -> Finding {
    let name = "free space"
    var found = statvfs()
    guard statvfs(path, &found) == 0 else {
      return .notice(
        name, "unknown: \(String(cString: strerror(errno)))", remedy: "none")
    }
    let bytes = UInt64(found.f_bavail) * UInt64(found.f_frsize)
    if bytes < 64 << 20 {
      return .problem(
        name, "only \(size(bytes)): soon nothing can be written",
        remedy: "make room on the history's file system")
    }
    if bytes < 1 << 30 {
      return .notice(
        name, "\(size(bytes)); each thread that records takes 2 MiB of it",
        remedy: "make room on the history's file system")
    }
    return .ok(name, size(bytes))
  }

  /// A program copies its log at every 16 MiB, unless a reader is in its way;
  /// at twice as much it counts calls instead of writing them, and at eight
  /// times as much it waits.
  static func log(of path: String) -> Finding {
    guard let bytes = fileSize(path + "-wal") else {
      return .ok("log", "none: nobody has the history open")
    }
    if bytes <= 32 << 20 { return .ok("log", size(bytes)) }
    return .notice(
      "log", "\(size(bytes)): it grows while somebody reads on and on",
      remedy: "end long transactions of readers, such as sqlite3 shells")
  }

  /// A number of bytes, for people.
  static func size(_ bytes: UInt64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    var unit = 0
    var tenths = bytes * 10
    while tenths >= 10_240, unit + 1 < units.count {
      tenths /= 1_024
      unit += 1
    }
    let fraction = unit == 0 || tenths >= 1_000 ? "" : ".\(tenths % 10)"
    return "\(tenths / 10)\(fraction) \(units[unit])"
  }
}
