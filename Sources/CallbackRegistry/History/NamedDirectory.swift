// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A directory that was named for the file of rings.
enum NamedDirectory {
  /// Its absolute name, with an ending slash; nil: a sentence in `problem`
  /// says what is to be done, or there is no memory.
  static func absolute(
    _ given: UnsafePointer<CChar>, status: inout Status,
    problem: inout Text
  ) -> UnsafeMutablePointer<CChar>? {
    let obstacle = cbr_directory_obstacle(
      given, RingFileLayout.firstArea, cbr_random())
    guard obstacle == CBR_PATH_FREE else {
      status = .audit
      problem.append("ring_directory ")
      problem.append(shortened: given)
      problem.append(": ")
      problem.append(sentence(for: obstacle))
      return nil
    }
    let length = length(of: given, limit: 65_536)
    guard let scratch = try? Scratch(bytes: length + 2) else {
      status = .noMemory
      problem.append(Status.noMemory.text)
      return nil
    }
    var text = scratch.text
    text.append(given)
    text.append("/")
    guard let absolute = cbr_absolute_path(scratch.start) else {
      status = .noMemory
      problem.append(Status.noMemory.text)
      return nil
    }
    return absolute
  }

  private static func sentence(for obstacle: Int32) -> StaticString {
    switch obstacle {
    case Int32(CBR_PATH_NO_DIRECTORY):
      "it does not exist; make it, or name another directory"
    case Int32(CBR_PATH_IS_NO_DIRECTORY):
      "it is not a directory; name one"
    case Int32(CBR_PATH_DIRECTORY_READ_ONLY):
      "it is not writable; make it writable, or name another directory"
    case Int32(CBR_PATH_FILE_SYSTEM_READ_ONLY):
      "its file system is read-only; name a directory on another one"
    case Int32(CBR_PATH_TOO_LONG):
      """
      its name is too long for the files in it, whose names are longer; \
      shorten it
      """
    case Int32(CBR_PATH_IS_REMOTE):
      """
      it is on a network file system, where locks and mapped memory are not \
      safe; name a directory on a local one
      """
    case Int32(CBR_PATH_IS_FULL):
      "its file system is full; make room there, or name another directory"
    default:
      """
      no file can be made there; see whether it is writable, or name another \
      directory
      """
    }
  }
}
