// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a visitor is shown.
///
/// The layout is that of `cbr_item`.
package struct Item {
  package var size: Int
  package var handle: UInt64
  package var kind: UInt32
  package var line: UInt32
  package var label: UnsafePointer<CChar>?
  package var file: UnsafePointer<CChar>?
  package var owner: UInt64
  package var ageNanoseconds: UInt64
  package var callsInFlight: UInt64
  package var leases: UInt64
}

package typealias Visitor =
  @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32

package enum Looking {
  /// Shows everything that is live in a registry.
  package static func eachLive(
    in handle: UInt64, visit: Visitor?, context: UnsafeMutableRawPointer?
  ) -> Status {
    look(at: handle, kind: .registry, visit: visit, context: context)
  }

  /// Shows what ending a handle would end.
  package static func impact(
    of handle: UInt64, visit: Visitor?, context: UnsafeMutableRawPointer?
  ) -> Status {
    look(at: handle, kind: nil, visit: visit, context: context)
  }

  private static func look(
    at handle: UInt64, kind: HandleKind?, visit: Visitor?,
    context: UnsafeMutableRawPointer?
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: kind)
      guard let visit else { throw thread.invalid("visit is NULL") }
      let access = try Access.of(handle, thread: thread)
      let registry = access.registry
      guard
        Table.knownSlot(at: Handle.index(of: handle))
          .pointee.word.load(ordering: .acquiring) == handle
      else { throw Access.absent(handle) }
      let isWhole = handle == registry.pointee.handle
      if !isWhole, !Handle.isContainer(handle) {
        guard var item = registry.item(handle) else {
          throw Access.absent(handle)
        }
        return visit(context, &item) == 0 ? .ok : thread.fail(.stopped)
      }
      let isFinished = registry.visitLive(
        inside: isWhole ? Handle.none : handle, visit, context)
      return isFinished ? .ok : thread.fail(.stopped)
    } catch {
      return thread.fail(error, about: handle)
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Visits live handles but the registry's own; no lock is held meanwhile.
  ///
  /// False when the visitor asked to stop.
  func visitLive(
    inside container: UInt64, _ visit: Visitor,
    _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    var cursor = SlotCursor(self)
    while let slot = cursor.next() {
      let word = slot.pointee.word.load(ordering: .acquiring)
      guard Handle.isWellFormed(Handle.handle(ofWord: word)),
        Handle.state(ofWord: word) == .live, word != pointee.handle,
        container == Handle.none || Belonging.isInside(word, container),
        var item = item(word)
      else { continue }
      if visit(context, &item) != 0 { return false }
    }
    return true
  }

  /// Nil when the handle has died meanwhile.
  func item(_ handle: UInt64) -> Item? {
    guard let found = description(of: handle), found.state == .live else {
      return nil
    }
    let empty: StaticString = ""
    let site = site(found.site)
    let label = label(found.callback)
    return Item(
      size: MemoryLayout<Item>.size, handle: handle,
      kind: UInt32(found.kind.rawValue), line: site?.line ?? 0,
      label: label ?? empty.characters, file: site?.file ?? empty.characters,
      owner: found.owner,
      ageNanoseconds: pointee.history.nanoseconds(
        ofTicks: Ticks.now &- found.registeredTime),
      callsInFlight: found.kind == .token ? Scan.countPins(handle) : 0,
      leases: UInt64(found.leases))
  }
}
