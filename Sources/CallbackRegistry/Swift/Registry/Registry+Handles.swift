// SPDX-License-Identifier: Apache-2.0

import Synchronization

#if !hasFeature(Embedded)
  extension Registry {
    /// Takes up the registry that a handle belongs to; nil when that is closed.
    ///
    /// Releasing this object does not close it.
    convenience init?(ofHandle handle: UInt64) {
      guard let chunk = Table.chunk(at: Handle.index(of: handle)) else {
        return nil
      }
      self.init(
        handle: chunk.pointee.registry.load(ordering: .acquiring))
    }
  }
#endif
