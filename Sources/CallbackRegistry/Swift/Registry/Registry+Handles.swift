// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    /// Takes up the registry that a handle belongs to; nil when that is closed.
    ///
    /// Releasing this object does not close it.
    convenience init?(ofHandle handle: UInt64) {
      self.init(handle: Table.registry(of: handle))
    }
  }
#endif
