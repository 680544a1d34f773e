// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Which file a path names at a moment.
package struct FileIdentity: Equatable {
  private var device: UInt64 = 0
  private var inode: UInt64 = 0

  /// Nil: there is none.
  package init?(of path: UnsafePointer<CChar>) {
    guard cbr_path_identity(path, &device, &inode) else { return nil }
  }
}
