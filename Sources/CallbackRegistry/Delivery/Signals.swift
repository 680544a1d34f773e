// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Signals: tokens that are called together, in a certain order (G20).
package enum Signals {
  package static func create(
    in handle: UInt64, label: UnsafePointer<CChar>?, owner: UInt64,
    typeTag: UInt64 = 0, out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let record = Memory.allocate(SignalRecord.self) else {
      return Process.currentThread()?.fail(.noMemory) ?? .noMemory
    }
    let status = Creating.create(
      .signal, in: handle, label: label, owner: owner, out: out
    ) { slot, registry, _ in
      record.initialize(
        to: SignalRecord(
          emissionLimit: registry.pointee.emissionLimit, typeTag: typeTag))
      slot.pointee.body = UnsafeMutableRawPointer(record)
    }
    if status != .ok { Memory.release(record) }
    return status
  }

  /// Registers a handler.
  ///
  /// On failure nothing is taken (G6).
  package static func connect(
    _ what: RegistrationRequest, to signal: UInt64, priority: Int32,
    delivery: DeliveryPlace = DeliveryPlace(),
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(signal, is: .signal)
      guard what.interface == nil else {
        throw thread.invalid("a handler is a function, not an interface")
      }
      guard what.typeTag == 0 else {
        throw thread.invalid("a handler has no type_tag: its signal's is known")
      }
      try Registering.validate(what, thread: thread)
      try Registering.checkForm(ofQueue: delivery.queue, thread: thread)
      let access = try Access.of(signal, thread: thread)
      guard let room = Memory.allocate(SignalConnection.self) else {
        throw .noMemory
      }
      do throws(Status) {
        try Registering.register(
          what, access,
          at: ConnectionPlace(
            signal: signal, priority: priority, delivery: delivery,
            room: room),
          out: out)
      } catch {
        Memory.release(room)
        throw error
      }
      return .ok
    } catch {
      return thread.fail(error, about: signal)
    }
  }

  /// Says whether a signal is live and was made with this type tag.
  package static func matches(_ handle: UInt64, tag: UInt64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .signal)
      let access = try Access.of(handle, thread: thread)
      let slot = Table.knownSlot(at: Handle.index(of: handle))
      let status: Status = access.registry.pointee.lock.locked {
        guard slot.pointee.word.load(ordering: .relaxed) == handle else {
          return Access.absent(handle)
        }
        return slot.signalRecord?.pointee.typeTag == tag ? .ok : .interface
      }
      guard status == .ok else { throw status }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Makes a signal's list anew when most of it is gone.
  static func tidy(_ signal: UInt64, _ thread: ThreadPointer) {
    guard
      let access = try? Access.of(signal, thread: thread, bySpare: true)
    else { return }
    let registry = access.registry
    var retired = Chain()
    registry.pointee.lock.locked {
      var status = Status.ok
      guard let spare = registry.takeSlot(status: &status) else { return }
      let slot = Table.knownSlot(at: Handle.index(of: signal))
      guard slot.pointee.word.load(ordering: .relaxed) == signal else {
        registry.pointee.free.giveBack(
          spare.index, generation: spare.generation)
        return
      }
      _ = registry.renew(
        signal, adding: nil, in: spare, thread: thread, retired: &retired)
    }
    if retired.count > 0 { Ending.settle(retired, access) }
  }

  /// Keeps a signal or a connection from being called, until it has been
  /// unblocked as often.
  package static func block(_ handle: UInt64) -> Status {
    change(handle, by: 1)
  }

  package static func unblock(_ handle: UInt64) -> Status {
    change(handle, by: -1)
  }

  private static func change(_ handle: UInt64, by step: Int64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: nil)
      let kind = Handle.kind(of: handle)
      guard kind == .signal || kind == .token else { throw .kind }
      let access = try Access.of(handle, thread: thread)
      let registry = access.registry
      let slot = Table.knownSlot(at: Handle.index(of: handle))
      var count: UInt32 = 0
      let status: Status = registry.pointee.lock.locked {
        guard slot.pointee.word.load(ordering: .relaxed) == handle else {
          return Access.absent(handle)
        }
        guard let blocks = slot.blocks else { return .kind }
        let changed = Int64(blocks) + step
        guard changed >= 0 else { return .invalid }
        guard changed <= Int64(UInt32.max) else { return .limit }
        count = UInt32(changed)
        slot.blocks = count
        if count == 0 {
          slot.pointee.mode.bitwiseAnd(~Mode.blocked, ordering: .relaxed)
        } else {
          slot.pointee.mode.bitwiseOr(Mode.blocked, ordering: .relaxed)
        }
        return .ok
      }
      guard status != .invalid else { throw thread.invalid("not blocked") }
      guard status == .ok else { throw status }
      if slot.isKnownToHistory {
        registry.record(
          step > 0 ? .blocked : .unblocked, handle, argument: count,
          thread: thread)
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// How many times a live signal or connection is blocked; nil: it is neither.
  ///
  /// The lock of its registry is held.
  fileprivate var blocks: UInt32? {
    get {
      isSignal ? signalRecord?.pointee.blocks : connection?.pointee.blocks
    }
    nonmutating set {
      guard let newValue else { return }
      if isSignal {
        signalRecord?.pointee.blocks = newValue
      } else {
        connection?.pointee.blocks = newValue
      }
    }
  }

  private var isSignal: Bool {
    Handle.kind(of: pointee.word.load(ordering: .relaxed)) == .signal
  }
}
