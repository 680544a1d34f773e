// SPDX-License-Identifier: Apache-2.0
//
// What is behind a slot of Swift's: a slot of the engine, which decides what is
// called, and what Swift last put into it. The lock orders those who set; it is
// taken before a registry's lock, and no user code runs under it: what was held
// before is ended and released when the lock is free.

#if !hasFeature(Embedded)
  // Unchecked: every `var` is used under the lock alone.
  @usableFromInline
  final class HeldToken<Content: Sendable>: @unchecked Sendable {
    /// What was put into the slot.
    struct Holding: Sendable {
      var token = Handle.none
      /// Whether it ends when it is replaced.
      var isOwn = false
      var content: Content?
    }

    @usableFromInline let registry: Registry
    let slot: UInt64
    private let isMadeHere: Bool
    private let lock: Monitor
    private var holding = Holding()
    private var observer = Handle.none
    private var lastFailure: RegistryError?

    init(
      _ label: String, in registry: Registry, owner: UInt64
    ) throws(RegistryError) {
      guard let lock = Monitor.make() else { throw RegistryError(.noMemory) }
      var made = Handle.none
      let status = withText(label, "label") { label in
        Slots.create(
          in: registry.handle, label: label, owner: owner, out: &made)
      }
      guard status == .ok else {
        lock.destroy()
        throw RegistryError(status, about: registry.handle)
      }
      self.registry = registry
      self.lock = lock
      slot = made
      isMadeHere = true
    }

    /// Takes up a live slot; nil when it is none.
    init?(handle: UInt64) {
      guard Handle.kind(of: handle) == .slot,
        let registry = Registry(ofHandle: handle), Liveness.isLive(handle),
        let lock = Monitor.make()
      else { return nil }
      self.registry = registry
      self.lock = lock
      slot = handle
      isMadeHere = false
    }

    deinit {
      if isMadeHere {
        _ = Ending.end(slot, reason: Reason.ended, waitingUntil: nil)
      }
      end(holding, reason: Reason.ended)
      endObserver(observer)
      lock.destroy()
    }

    /// Puts a token into the slot, or nothing, and ends the former one.
    ///
    /// What cannot be put there is ended, if it would have been the slot's own.
    func set(_ new: Holding) throws(RegistryError) {
      var former = Holding()
      let status = lockedWhileLive {
        let status = Slots.set(slot, to: new.token)
        guard status == .ok else { return status }
        former = holding
        holding = new
        return .ok
      }
      guard status == .ok else {
        let error = RegistryError(status, about: slot)
        end(new, reason: Reason.ended)
        throw error
      }
      end(
        former,
        reason: new.token == Handle.none ? Reason.ended : Reason.replaced)
    }

    /// Names who is told when what is in the slot dies; none: nobody.
    ///
    /// It is ended with the slot, or when another takes its place.
    func observe(by new: UInt64) throws(RegistryError) {
      var former = Handle.none
      let status = lockedWhileLive {
        let status = Slots.observe(slot, by: new)
        guard status == .ok else { return status }
        former = observer
        observer = new
        return .ok
      }
      guard status == .ok else {
        let error = RegistryError(status, about: slot)
        endObserver(new)
        throw error
      }
      endObserver(former)
    }

    private func endObserver(_ token: UInt64) {
      guard token != Handle.none else { return }
      _ = Ending.end(token, reason: Reason.ended, waitingUntil: nil)
    }

    /// In a forked child the lock may be in the hands of a thread that does not
    /// exist there; there nothing is live, and the engine refuses it.
    private func lockedWhileLive(_ body: () -> Status) -> Status {
      Liveness.isLive(slot) ? lock.locked(body) : body()
    }

    private func end(_ holding: Holding, reason: UInt32) {
      guard holding.isOwn else { return }
      _ = Ending.end(holding.token, reason: reason, waitingUntil: nil)
    }

    /// What is in the slot, if it is what was put there.
    var present: Holding? {
      guard Liveness.isLive(slot) else { return nil }
      return lock.locked {
        let token = Slots.get(slot)
        return token != Handle.none && token == holding.token ? holding : nil
      }
    }

    /// Calls what is in the slot; again, if that has been replaced before it was
    /// entered: who always finds something there is never told that it is dead.
    @inlinable
    func withTarget<Result>(
      _ body: (UInt64) throws(RegistryError) -> Result
    ) throws(RegistryError) -> Result {
      while true {
        let target = try target()
        do throws(RegistryError) {
          return try body(target)
        } catch {
          guard isReplaced(target, error) else { throw error }
        }
      }
    }

    /// Whether a call has failed because something else is there by now.
    @usableFromInline
    func isReplaced(_ target: UInt64, _ error: RegistryError) -> Bool {
      guard case .stale = error else { return false }
      let token = Slots.get(slot)
      return token != Handle.none && token != target
        && !Liveness.isLive(target)
    }

    /// What a call is to enter: what is in the slot, or what was in it and has
    /// died, so that the attempt is recorded as a late one.
    @usableFromInline
    func target() throws(RegistryError) -> UInt64 {
      let token = Slots.get(slot)
      if token != Handle.none { return token }
      guard Liveness.isLive(slot) else {
        // It has been dead, for certain, from here on.
        _ = Slots.get(slot)
        throw RegistryError.ofThread()
      }
      let former = lock.locked { holding.token }
      guard former != Handle.none, !Liveness.isLive(former) else {
        throw RegistryError(.empty, about: slot)
      }
      return former
    }

    /// Why what was assigned last is not there.
    var failure: RegistryError? {
      get { lock.locked { lastFailure } }
      set { lock.locked { lastFailure = newValue } }
    }
  }
#endif
