// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The bytes of a file; nil without one.
func fileSize(_ path: String) -> UInt64? {
  var found = stat()
  return stat(path, &found) == 0 ? UInt64(found.st_size) : nil
}
