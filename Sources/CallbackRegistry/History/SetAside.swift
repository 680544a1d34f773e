// SPDX-License-Identifier: Apache-2.0
//
// Files that cannot be used any more are given other names; none is deleted.

import CPlatform

enum SetAside {
  /// A name that nobody looks for: the path with an ending of its own.
  static func name(
    for path: UnsafePointer<CChar>
  ) throws(DatabaseError) -> Scratch {
    let scratch = try Scratch(bytes: 8_192)
    var text = scratch.text
    text.append(path)
    text.append(".set-aside-")
    text.append(cbr_random() % 1_000_000)
    return scratch
  }

  /// Renames a database together with its log and the log's index, so that
  /// they still belong to each other.
  ///
  /// Returns whether there was one.
  static func database(
    _ path: UnsafePointer<CChar>, to name: UnsafePointer<CChar>
  ) -> Bool {
    // The log first: one without its database is not read by anybody, but one
    // beside another database is.
    _ = rename(path, to: name, ending: "-wal")
    _ = rename(path, to: name, ending: "-shm")
    return rename(path, to: name, ending: "")
  }

  /// Whether there is something in a log.
  static func hasLog(_ path: UnsafePointer<CChar>) -> Bool {
    guard let log = try? Scratch(bytes: 8_192) else { return false }
    var text = log.text
    text.append(path)
    text.append("-wal")
    return cbr_path_bytes(log.start) > 0
  }

  /// Renames a log that has lost its database.
  ///
  /// Returns whether there was one.
  static func log(
    of path: UnsafePointer<CChar>, to name: UnsafePointer<CChar>
  ) -> Bool {
    _ = rename(path, to: name, ending: "-shm")
    return rename(path, to: name, ending: "-wal")
  }

  private static func rename(
    _ path: UnsafePointer<CChar>, to name: UnsafePointer<CChar>,
    ending: StaticString
  ) -> Bool {
    guard let old = try? Scratch(bytes: 8_192),
      let new = try? Scratch(bytes: 8_192)
    else { return false }
    var text = old.text
    text.append(path)
    text.append(ending)
    text = new.text
    text.append(name)
    text.append(ending)
    return cbr_file_rename(old.start, new.start)
  }
}
