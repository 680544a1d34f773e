// SPDX-License-Identifier: Apache-2.0
//
// The owners that stand for objects which callbacks are registered to. Nothing
// tells when a Swift object dies on Linux, so each entry holds its object
// weakly, and dead ones are looked for: at a registration, when there are twice
// as many entries as were alive last time; when somebody looks at what is
// live; and at every call (ClosureBox).
//
// Entries are found by address, but an address alone decides nothing (G4): an
// entry is an object's when its weak reference still leads there.
//
// No user code runs under the lock (G13). Looking at a weak reference makes a
// strong one for a moment, whose release may be the last; so those are kept
// until the lock is free. Only an object that the caller holds is looked at
// without that.

#if !hasFeature(Embedded)
  // Unchecked: `entries` and `sweepCount` are used under the lock alone.
  final class ObjectOwners: @unchecked Sendable {
    private struct Entry {
      weak var object: (any AnyObject & Sendable)?
      let owner: UInt64
    }

    static let leastSweepCount = 32

    private let lock: Monitor
    private var entries: [ObjectIdentifier: Entry] = [:]
    private var sweepCount = ObjectOwners.leastSweepCount

    /// Nil without memory.
    init?() {
      guard let lock = Monitor.make() else { return nil }
      self.lock = lock
    }

    deinit { lock.destroy() }

    /// The owner of an object that the caller holds; nil when it has none.
    func find(_ object: any AnyObject & Sendable) -> UInt64? {
      lock.locked {
        guard let entry = entries[ObjectIdentifier(object)],
          entry.object != nil, Liveness.isLive(entry.owner)
        else { return nil }
        return entry.owner
      }
    }

    /// Makes an owner an object's, unless another thread has been faster.
    ///
    /// Returns the object's owner, and what is to be ended.
    func add(
      _ owner: UInt64, of object: any AnyObject & Sendable
    ) -> (owner: UInt64, former: UInt64?) {
      lock.locked {
        let key = ObjectIdentifier(object)
        let former = entries[key]
        if let former, former.object != nil, Liveness.isLive(former.owner) {
          return (former.owner, owner)
        }
        entries[key] = Entry(object: object, owner: owner)
        return (owner, former?.owner)
      }
    }

    /// Takes out the owner of an object that is alive, or in its `deinit`: no
    /// other object can be where that one is.
    func take(_ object: AnyObject) -> UInt64? {
      lock.locked {
        entries.removeValue(forKey: ObjectIdentifier(object))?.owner
      }
    }

    /// Takes out the owners of dead objects, if there may be many.
    func takeDeadIfDue() -> [UInt64] {
      let isDue = lock.locked { entries.count >= sweepCount }
      return isDue ? takeDead() : []
    }

    /// Takes out the owners of dead objects.
    func takeDead() -> [UInt64] {
      var dead: [UInt64] = []
      var alive: [any AnyObject & Sendable] = []
      lock.locked {
        for (key, entry) in entries {
          if let object = entry.object {
            alive.append(object)
          } else {
            dead.append(entry.owner)
            entries[key] = nil
          }
        }
        sweepCount = max(alive.count * 2, Self.leastSweepCount)
      }
      withExtendedLifetime(alive) {}
      return dead
    }
  }

  extension Registry {
    /// The owner that stands for an object which the caller holds.
    func owner(
      of object: any AnyObject & Sendable
    ) throws(RegistryError) -> UInt64 {
      // In a forked child the lock may be in the hands of a thread that does
      // not exist here; there nothing is live.
      if Liveness.isLive(handle) {
        endDeadObjects(objects.takeDeadIfDue())
        if let owner = objects.find(object) { return owner }
      }
      let label = String(
        _typeName(type(of: object), qualified: false).prefix(63))
      let made = try Owner.create(label, in: handle, kind: .registry)
      let (owner, former) = objects.add(made, of: object)
      if let former {
        // A spare one, or that of a dead object which was here before.
        endDeadObjects([former])
      }
      return owner
    }

    /// Ends what was registered to objects that have died since.
    func endDeadObjects() {
      if Liveness.isLive(handle) { endDeadObjects(objects.takeDead()) }
    }

    private func endDeadObjects(_ owners: [UInt64]) {
      for owner in owners {
        _ = Ending.end(owner, reason: Reason.objectDied, waitingUntil: nil)
      }
    }
  }
#endif
