// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What a thunk's slot holds.
struct ThunkRecord {
  /// Only how it is freed: its end asks for nothing more.
  let header: RecordHeader
  let token: UInt64
  /// That its token is entered with; 0: none.
  let typeTag: UInt64
  let place: ThunkPlace
}

typealias ThunkRecordPointer = UnsafeMutablePointer<ThunkRecord>

/// Thunks: plain C functions that are bound to tokens (G29).
package enum Thunks {
  /// Makes a thunk, which belongs to what its token belongs to.
  package static func create(
    in handle: UInt64, token: UInt64, _ what: SignatureRequest,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      try thread.checkText(what.label, "label", limit: TextLimit.label)
      try thread.checkText(
        what.file, "file", limit: TextLimit.file, rule: .path)
      guard Handle.isWellFormed(token) else {
        throw thread.invalid("token is not a handle")
      }
      guard Handle.kind(of: token) == .token else {
        throw thread.toThrow(thread.fail(.kind, about: token))
      }
      guard
        let room = Memory.allocate(UInt8.self, count: SignatureCodes.limit)
      else { throw .noMemory }
      defer { Memory.release(room) }
      let codes = try SignatureCodes(what, bytes: room, thread: thread)
      let access = try Access.registry(handle, thread: thread)
      try create(for: token, what, codes, access, out: out)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func create(
    for token: UInt64, _ what: SignatureRequest, _ codes: SignatureCodes,
    _ access: borrowing Access, out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    let thread = access.thread
    let bound = try registry.bound(token, tag: what.typeTag, thread: thread)
    var origin = try registry.internOrigin(
      label: what.label, file: what.file, line: what.line)
    if what.label == nil { origin.callback = bound.callback }
    guard let record = Memory.allocate(ThunkRecord.self) else {
      throw .noMemory
    }
    do throws(Status) {
      let place = try ThunkPool.take(
        codes, count: what.count, otherwise: what.otherwise, thread: thread)
      var new = NewSlot(
        kind: .thunk, origin: origin, owner: bound.owner,
        mode: Mode.notCallable | registry.level.mode, thread: thread)
      do throws(Status) {
        try registry.add(&new, access, out: out) { slot, detail, handle in
          record.initialize(
            to: ThunkRecord(
              header: RecordHeader(
                handle: handle, ended: { _ in }, abandoned: { _ in },
                free: { Thunks.free($0) }),
              token: token, typeTag: what.typeTag, place: place))
          slot.pointee.body = UnsafeMutableRawPointer(record)
          slot.pointee.function = place.address
          detail.pointee.typeTag = token
          place.set(handle)
        }
      } catch {
        ThunkPool.release(place)
        throw error
      }
    } catch {
      Memory.release(record)
      throw error
    }
  }

  /// Nothing is inside it any more; its address goes on answering.
  private static func free(_ memory: UnsafeMutableRawPointer) {
    let record = memory.assumingMemoryBound(to: ThunkRecord.self)
    ThunkPool.release(record.pointee.place)
    Memory.release(record)
  }

  /// The address of a live thunk; nil when it is dead.
  package static func function(_ handle: UInt64) -> UnsafeRawPointer? {
    guard let thread = Process.currentThread() else { return nil }
    do throws(Status) {
      try HandleForm.check(handle, is: .thunk)
      guard let slot = Table.slot(of: handle) else {
        throw Access.absent(handle)
      }
      let function = slot.pointee.function
      guard slot.pointee.word.load(ordering: .acquiring) == handle else {
        throw Access.absent(handle)
      }
      return function
    } catch {
      _ = thread.fail(error, about: handle)
      return nil
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// What a thunk takes over from its token.
  fileprivate func bound(
    _ token: UInt64, tag: UInt64, thread: ThreadPointer
  ) throws(Status) -> (owner: UInt64, callback: UInt32) {
    var owner = Handle.none
    var callback: UInt32 = 0
    let status: Status = pointee.lock.locked {
      let status = checkToken(token)
      guard status == .ok else { return status }
      let index = Handle.index(of: token)
      let slot = Table.knownSlot(at: index)
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      guard mode & (Mode.interface | Mode.connection) == 0,
        mode & Mode.tagged == 0 ? tag == 0 : slot.typeTag == tag
      else { return .interface }
      let holder = handleOfSlot(slot.pointee.owner.load(ordering: .relaxed))
      if Handle.kind(of: holder) == .owner { owner = holder }
      callback = Table.knownDetail(at: index).pointee.callback
      return .ok
    }
    guard status == .ok else {
      throw thread.toThrow(thread.fail(status, about: token))
    }
    return (owner, callback)
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a thunk.
  var thunkRecord: ThunkRecordPointer? {
    pointee.body?.assumingMemoryBound(to: ThunkRecord.self)
  }
}
