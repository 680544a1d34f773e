// SPDX-License-Identifier: Apache-2.0

import CLinux
import CallbackRegistry
import Glibc

/// What is in the directory of files of rings beside a history, and those of
/// its files of rings that are elsewhere.
///
/// No lock is taken: whoever recovers meanwhile is not disturbed.
struct RingDirectory {
  enum State {
    case live, dead, setAside
    /// A dead process's, and not to be read.
    case damaged
    /// Cannot be opened.
    case closed
    /// Not where its run has noted that it is.
    case missing
    /// Nothing that the library puts there.
    case junk
  }

  struct File {
    var state: State
    var run = ""
    /// How far each ring has come, by its number.
    var heads: [UInt32: UInt64] = [:]
  }

  private(set) var files: [File] = []
  /// Why the directory cannot be read.
  private(set) var obstacle: String?

  init(of path: String, places: [RingPlaces.Place]) {
    for place in places {
      if let file = Self.look(place.file) {
        files.append(file)
      } else if !place.hasEnded {
        files.append(File(state: .missing))
      }
    }
    let directory = path + ".rings"
    guard let names = Self.names(in: directory) else {
      if errno != ENOENT { obstacle = String(cString: strerror(errno)) }
      return
    }
    for name in names {
      if let file = Self.look(directory + "/" + name) { files.append(file) }
    }
  }

  /// What is in a directory; nil, with a reason in errno, if that cannot be
  /// read.
  static func names(in directory: String) -> [String]? {
    guard let listing = opendir(directory) else { return nil }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) {
          String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  func count(_ state: State) -> Int { files.count { $0.state == state } }

  /// Nil: it is gone by now.
  private static func look(_ path: String) -> File? {
    if path.hasSuffix(".ring.set-aside") { return File(state: .setAside) }
    let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      return File(state: errno == EACCES ? .closed : .junk)
    }
    defer { close(file) }
    var found = stat()
    guard fstat(file, &found) == 0, found.st_mode & S_IFMT == S_IFREG,
      path.hasSuffix(".ring") || path.hasSuffix(".ring.new")
    else { return File(state: .junk) }
    let isLocked = isLocked(file)
    // A process makes it under this name before it is anybody's.
    if path.hasSuffix(".new") { return isLocked ? nil : File(state: .junk) }
    return look(into: file, isLocked: isLocked)
  }

  private static func look(into file: Int32, isLocked: Bool) -> File {
    guard let rings = RingFileLook(file) else {
      return File(state: isLocked ? .live : .damaged)
    }
    var result = File(state: isLocked ? .live : .dead)
    result.run = rings.withRun { String(decoding: $0, as: UTF8.self) }
    for area in 0..<rings.areas {
      guard let ring = rings.ring(inArea: area) else { continue }
      result.heads[ring.number] = ring.head
    }
    return result
  }

  /// Whether another process holds a file for its own.
  private static func isLocked(_ file: Int32) -> Bool {
    var whole = flock()
    whole.l_type = Int16(F_RDLCK)
    whole.l_whence = Int16(SEEK_SET)
    guard fcntl(file, CBR_OFD_GETLK, &whole) == 0 else { return true }
    return whole.l_type != Int16(F_UNLCK)
  }
}
