// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
  /// Copies a history into one file that opens anywhere, also read-only.
  static func snapshot(_ arguments: Arguments) throws -> Ending {
    let values = try arguments.values("PATH", "COPY")
    let copy = try Copy(to: values[1])
    Interruption.expect()
    try Reader.reading(values[0]) { try copy.fill(from: $0) }
    try copy.publish()
    if arguments.isJSON {
      print("{\"copy\": \(json(values[1]))}")
    } else {
      print("copied into \(values[1])")
    }
    return .done
  }
}

/// A file that has its name only when it is whole, and takes no other's.
///
/// Until then it is beside it under another name, and is removed when
/// anything fails.
struct Copy: ~Copyable {
  private let path: String
  let draft: String

  init(to path: String) throws {
    self.path = path
    var name = Array((path + ".XXXXXX").utf8CString)
    var found = stat()
    guard lstat(path, &found) != 0 else { throw Self.exists(path) }
    let file = mkstemp(&name)
    guard file >= 0 else {
      throw Problem(
        sentence: "\(path): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
    draft = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    // As any file would be made.
    let mask = umask(0)
    umask(mask)
    fchmod(file, 0o644 & ~mask)
    close(file)
  }

  deinit {
    unlink(draft)
    unlink(draft + "-journal")
  }

  func fill(from reader: borrowing Reader) throws {
    truncate(draft, 0)
    // In a damaged history more pages may be free than there are.
    let pages = try max(
      0,
      reader.number("PRAGMA page_count")
        - reader.number("PRAGMA freelist_count"))
    let total = UInt64(pages * (try reader.number("PRAGMA page_size")))
    var progress = Progress()
    let draft = self.draft
    func goesOn() -> Bool {
      progress.show {
        let bytes = Command.size(fileSize(draft) ?? 0)
        return "copying: \(bytes) of \(Command.size(total))"
      }
      return !Interruption.hasCome
    }
    defer { progress.end() }
    _ = goesOn()
    // SQLite would take a name such as file:x for something else.
    try reader.copy(
      to: draft.hasPrefix("/") ? draft : "./" + draft, while: goesOn)
  }

  /// Gives the file its name, once it is on the disk.
  func publish() throws {
    let file = open(draft, O_RDONLY | O_CLOEXEC)
    let isSafe = file >= 0 && fsync(file) == 0
    if file >= 0 { close(file) }
    if isSafe, link(draft, path) == 0 { return }
    if errno == EEXIST { throw Self.exists(path) }
    // Some file systems have no links.
    guard isSafe, access(path, F_OK) != 0, rename(draft, path) == 0 else {
      throw Problem(
        sentence: "\(path): \(String(cString: strerror(errno)))",
        ending: .failed)
    }
  }

  private static func exists(_ path: String) -> Problem {
    Problem(
      sentence: "\(path) exists and was left as it is; name another file",
      ending: .failed)
  }
}
