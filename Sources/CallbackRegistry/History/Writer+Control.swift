// SPDX-License-Identifier: Apache-2.0

extension Writer {
  /// Takes an event that is not a call.
  mutating func takeControl(
    _ record: UnsafeMutablePointer<UInt64>, head: UInt64,
    from cursor: UnsafeMutablePointer<Cursor>, number: UInt32
  ) {
    let handle = record[2]
    let argument = UInt32(truncatingIfNeeded: record[3] >> 32)
    let position = cursor.pointee.working.position
    let kind = EventLayout.kind(ofHead: head)
    let cell = handle == 0 ? nil : batch.cells.index(of: handle)
    if let cell, takeUpdate(kind, cell: cell, at: position, of: cursor) {
      cursor.pointee.working.updates &+= 1
      batch.updates &+= 1
      return
    }
    if let cell { note(kind, cell: cell) }
    cursor.pointee.working.rows &+= 1
    batch.add(
      ControlRow(
        time: clock.nanoseconds(at: record[1]), handle: handle,
        argument: argument, offset: UInt32(truncatingIfNeeded: batch.rowCount),
        cell: cell.map { UInt32(truncatingIfNeeded: $0) } ?? ControlRow.noCell,
        cursor: number, position: position,
        ringSequence: EventLayout.sequence(ofHead: head), kind: kind,
        continuations: EventLayout.flags(ofHead: head)))
    if kind == EventKind.settled.rawValue, let cell {
      let payload = payload(at: position, of: cursor)
      setCounts(
        cell, attempts: payload.first, outstanding: UInt64(argument),
        isFinal: true)
    }
  }

  /// Takes an event that only changes rows; false when it is another.
  private mutating func takeUpdate(
    _ kind: UInt8, cell index: Int, at position: UInt64,
    of cursor: UnsafeMutablePointer<Cursor>
  ) -> Bool {
    guard kind == EventKind.counted.rawValue else { return false }
    let payload = payload(at: position, of: cursor)
    setCounts(
      index, attempts: payload.first, outstanding: payload.second,
      isFinal: false)
    return true
  }

  /// Notes in its handle's cell what a row will say.
  private mutating func note(_ kind: UInt8, cell index: Int) {
    let cell = batch.cells.pointer(to: index)
    let row = UInt32(truncatingIfNeeded: batch.controlCount + 1)
    switch kind {
    case EventKind.opened.rawValue, EventKind.registered.rawValue:
      if cell.pointee.registered == 0 { cell.pointee.registered = row }
    case EventKind.ended.rawValue, EventKind.closed.rawValue:
      if cell.pointee.ended == 0 { cell.pointee.ended = row }
    case EventKind.settled.rawValue:
      if cell.pointee.settled == 0 { cell.pointee.settled = row }
    case EventKind.refused.rawValue: cell.pointee.refusals &+= 1
    case EventKind.abandoned.rawValue: cell.pointee.abandoned &+= 1
    case EventKind.leased.rawValue: cell.pointee.leases &+= 1
    case EventKind.leaseEnded.rawValue: cell.pointee.leasesEnded &+= 1
    default: break
    }
  }

  /// Counts only grow: one that is smaller was taken before another.
  ///
  /// But the one of a settled token is final, and may be less by attempts that
  /// turned out to be none.
  private mutating func setCounts(
    _ index: Int, attempts: UInt64, outstanding: UInt64, isFinal: Bool
  ) {
    let cell = batch.cells.pointer(to: index)
    guard
      isFinal
        || cell.pointee.settled == 0 && attempts >= cell.pointee.attempts
    else { return }
    cell.pointee.isCounted = true
    cell.pointee.attempts = attempts
    cell.pointee.outstanding = outstanding
  }

  /// The first three words of an event's payload.
  func payload(
    at position: UInt64, of cursor: UnsafeMutablePointer<Cursor>
  ) -> Payload {
    let head = cursor.pointee.ring.record(at: position)[0]
    guard EventLayout.flags(ofHead: head) > 0 else { return Payload(0) }
    let record = cursor.pointee.ring.record(at: position &+ 1)
    return Payload(record[1], record[2], record[3])
  }
}
