// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A directory in memory, where one test may make what files it likes.
struct Folder {
  let path: String

  init() {
    var name = Array("/dev/shm/cbr-fuzz.XXXXXX".utf8CString)
    guard mkdtemp(&name) != nil else { fatalError("no directory") }
    path = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  static func / (folder: Folder, name: String) -> String {
    folder.path + "/" + name
  }

  func write(_ bytes: [UInt8], to name: String) {
    let file = open(
      self / name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    let written = bytes.withUnsafeBytes {
      Glibc.write(file, $0.baseAddress, $0.count)
    }
    guard close(file) == 0, written == bytes.count else {
      fatalError("\(self / name) cannot be written")
    }
  }

  static func read(_ path: String) -> [UInt8] {
    guard let size = fileSize(path), let file = fopen(path, "re") else {
      fatalError("no \(path)")
    }
    defer { fclose(file) }
    return [UInt8](unsafeUninitializedCapacity: Int(size)) { bytes, count in
      count = fread(bytes.baseAddress, 1, Int(size), file)
    }
  }

  /// The names of all that is in it.
  var files: [String] { RingDirectory.names(in: path) ?? [] }

  /// Removes all that is in it.
  func removeFiles() {
    for name in files where unlink(self / name) != 0 {
      guard rmdir(self / name) == 0 else { fatalError("\(self / name) stays") }
    }
  }

  func remove() {
    removeFiles()
    rmdir(path)
  }
}
