// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    // Guarded by Monitor.shared, which a forked child has anew.
    private nonisolated(unsafe) static var sharedObject: Registry?

    /// The registry that all users of one process share, in C and in Swift,
    /// opened on first use.
    ///
    /// Its history is the file that the environment variable `CBR_HISTORY`
    /// names, else memory; its level is `CBR_LEVEL` (off, lifecycle, calls).
    /// After it was closed the next use opens a new one.
    ///
    /// - Throws: As opening one does.
    public static var shared: Registry {
      get throws(RegistryError) {
        let handle = Sharing.registry()
        guard handle != Handle.none else {
          throw RegistryError.ofThread()
        }
        if let known = sharedObject(of: handle, replacingBy: nil) {
          return known
        }
        guard let made = Registry(handle: handle) else {
          throw RegistryError(.closed, about: handle)
        }
        return sharedObject(of: handle, replacingBy: made) ?? made
      }
    }

    /// The object of that handle, made `new` if there is none.
    ///
    /// What it was before is released when the lock is free.
    private static func sharedObject(
      of handle: UInt64, replacingBy new: Registry?
    ) -> Registry? {
      var former: Registry?
      let present: Registry? = Monitor.shared.locked {
        if let known = sharedObject, known.handle == handle { return known }
        guard let new else { return nil }
        former = sharedObject
        sharedObject = new
        return new
      }
      withExtendedLifetime(former) {}
      return present
    }
  }

  extension RegistryError {
    /// The error for the calling thread's last status, whatever it was.
    static func ofThread() -> RegistryError {
      RegistryError(ThreadPointer.current?.pointee.error.status ?? .noMemory)
    }
  }
#endif
