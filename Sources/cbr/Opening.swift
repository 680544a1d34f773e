// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

/// Opens a history by one of the library's functions, and makes its refusal a
/// problem.
///
/// A path that names nothing is refused: a command makes no history.
func withHistory<Result>(
  _ path: String,
  _ body: (UnsafePointer<CChar>, inout Status, inout Text) -> Result
) throws -> Result {
  guard access(path, F_OK) == 0 else {
    throw Problem(
      sentence: "history \(path): \(String(cString: strerror(errno)))",
      ending: .failed)
  }
  var status = Status.ok
  var sentence = [CChar](repeating: 0, count: 1_024)
  let result = sentence.withUnsafeMutableBufferPointer { buffer in
    var text = Text(buffer.baseAddress, size: buffer.count)
    return path.withCString { body($0, &status, &text) }
  }
  guard status == .ok else {
    throw Problem(
      sentence: sentence.withUnsafeBufferPointer {
        String(cString: $0.baseAddress!)
      }, ending: .failed)
  }
  return result
}
