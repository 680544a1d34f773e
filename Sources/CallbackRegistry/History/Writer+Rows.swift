// SPDX-License-Identifier: Apache-2.0

extension Writer {
  /// Writes the batch's calls and control events.
  mutating func writeRows(first: UInt64) throws(DatabaseError) {
    var index = 0
    let many = statements.addManyCalls
    while index + Statements.rowsAtOnce <= batch.callCount {
      for offset in 0..<Statements.rowsAtOnce {
        bind(
          batch.calls + index + offset, to: many,
          from: Int32(truncatingIfNeeded: offset &* 6), first: first)
      }
      try many.run()
      index += Statements.rowsAtOnce
    }
    while index < batch.callCount {
      bind(batch.calls + index, to: statements.addCall, from: 0, first: first)
      try statements.addCall.run()
      index += 1
    }
    hashCalls(first: first)
    beginControlHash(first: first)
    for index in 0..<batch.controlCount {
      try writeControl(batch.controls + index, first: first)
    }
    endControlHash()
    var place = 0
    while let sum = refusals.takeOut(from: &place) { try write(sum) }
  }

  @inline(__always)
  private func bind(
    _ call: UnsafeMutablePointer<CallRow>, to statement: Statement,
    from index: Int32, first: UInt64
  ) {
    let cell = batch.cells.pointer(to: Int(call.pointee.cell))
    let cursor = cursors.pointer(to: Int(call.pointee.cursor))
    statement.bind(index &+ 1, first &+ UInt64(call.pointee.offset))
    statement.bind(index &+ 2, call.pointee.time)
    statement.bind(index &+ 3, cursor.pointee.working.row)
    statement.bind(index &+ 4, cell.pointee.handle)
    statement.bind(index &+ 5, cell.pointee.callback)
    statement.bind(index &+ 6, call.pointee.duration)
  }

  private mutating func writeControl(
    _ row: UnsafeMutablePointer<ControlRow>, first: UInt64
  ) throws(DatabaseError) {
    let cursor = cursors.pointer(to: Int(row.pointee.cursor))
    let sequence = first &+ UInt64(row.pointee.offset)
    let cell =
      row.pointee.cell == ControlRow.noCell
      ? nil : batch.cells.pointer(to: Int(row.pointee.cell))
    var columns = ControlColumns()
    columns.set(1, sequence)
    columns.set(2, row.pointee.time)
    columns.set(3, cursor.pointee.working.row)
    columns.set(4, UInt32(row.pointee.kind))
    columns.set(5, row.pointee.handle)
    columns.set(6, cell?.pointee.callback ?? 0)
    columns.set(7, row.pointee.argument)
    columns.set(8, row.pointee.thread)
    columns.set(9, row.pointee.ringSequence)
    try setPayload(of: row, at: cursor, in: &columns, sequence: sequence)
    columns.bind(to: statements[.addControl])
    try statements[.addControl].run()
    if let hash = chain.hash { columns.add(to: hash) }
  }

  /// Says what an event's payload says, kind by kind.
  private mutating func setPayload(
    of row: UnsafeMutablePointer<ControlRow>,
    at cursor: UnsafeMutablePointer<Cursor>,
    in columns: inout ControlColumns, sequence: UInt64
  ) throws(DatabaseError) {
    let payload = payload(at: row.pointee.position, of: cursor)
    switch row.pointee.kind {
    case EventKind.thread.rawValue:
      columns.set(12, payload.first & 0xFFFF_FFFF)
    case EventKind.opened.rawValue:
      // The dictionary's number means nothing outside of the process.
      columns.set(7, callbacks[row.pointee.argument])
      columns.set(12, payload.first)
    case EventKind.closed.rawValue, EventKind.settled.rawValue:
      columns.set(12, payload.first)
      columns.set(13, payload.second)
    case EventKind.registered.rawValue:
      columns.set(10, payload.first)
      let site = sites[UInt32(truncatingIfNeeded: payload.second)]
      if site != 0 { columns.set(11, site) }
      columns.set(12, payload.third)
    case EventKind.leased.rawValue, EventKind.leaseEnded.rawValue:
      columns.set(10, payload.first)
    case EventKind.slotSet.rawValue:
      columns.set(10, payload.first)
      columns.set(12, payload.second)
    case EventKind.slotCleared.rawValue:
      columns.set(10, payload.first)
    case EventKind.undelivered.rawValue:
      columns.set(10, payload.first)
      columns.set(12, payload.second)
    case EventKind.taskCompleted.rawValue:
      columns.set(7, Int64(Int32(bitPattern: row.pointee.argument)))
      columns.set(12, payload.first)
      columns.set(13, payload.second)
    case EventKind.refused.rawValue:
      let status = Int32(bitPattern: row.pointee.argument)
      columns.set(7, Int64(status))
      let out = refusals.add(
        handle: row.pointee.handle, status: status,
        thread: row.pointee.thread, sequence: sequence,
        time: row.pointee.time)
      if let out { try write(out) }
    case EventKind.messagesDropped.rawValue:
      columns.set(7, Int64(Int32(bitPattern: row.pointee.argument)))
      columns.set(10, payload.first)
      columns.set(12, payload.second)
      columns.set(13, payload.third)
    case EventKind.queueCounted.rawValue:
      columns.set(12, payload.first)
      columns.set(13, payload.second)
      try writeQueue(row, at: cursor, sequence: sequence)
    case EventKind.note.rawValue:
      try writeNote(row, at: cursor, sequence: sequence)
    default: break
    }
  }

  private func writeNote(
    _ row: UnsafeMutablePointer<ControlRow>,
    at cursor: UnsafeMutablePointer<Cursor>, sequence: UInt64
  ) throws(DatabaseError) {
    let length = min(
      Int(row.pointee.argument), EventLayout.longestPayload,
      Int(row.pointee.continuations) * EventLayout.payloadBytes)
    var copied = 0
    while copied < length {
      let index = UInt64(copied / EventLayout.payloadBytes)
      let record = cursor.pointee.ring.record(
        at: row.pointee.position &+ 1 &+ index)
      let count = min(EventLayout.payloadBytes, length - copied)
      UnsafeMutableRawPointer(scratch.start + copied)
        .copyMemory(from: record + 1, byteCount: count)
      copied += count
    }
    let statement = statements[.addNote]
    statement.bind(1, sequence)
    statement.bind(2, row.pointee.handle)
    statement.bind(3, scratch.start, length: length)
    try statement.run()
  }

  /// The counts of a queue are as many words as its row has columns.
  private func writeQueue(
    _ row: UnsafeMutablePointer<ControlRow>,
    at cursor: UnsafeMutablePointer<Cursor>, sequence: UInt64
  ) throws(DatabaseError) {
    guard row.pointee.continuations >= 3 else { return }
    let statement = statements[.setQueue]
    statement.bind(1, row.pointee.handle)
    statement.bind(2, run)
    for index in 0..<9 {
      let record = cursor.pointee.ring.record(
        at: row.pointee.position &+ 1 &+ UInt64(index / 3))
      statement.bind(
        Int32(truncatingIfNeeded: 3 + index), record[1 + index % 3])
    }
    statement.bind(12, sequence)
    try statement.run()
  }

  private func write(_ sum: RefusalSum) throws(DatabaseError) {
    let statement = statements[.addRefusals]
    statement.bind(1, sum.handle)
    statement.bind(2, Int64(sum.status))
    statement.bind(3, sum.thread)
    statement.bind(4, run)
    statement.bind(5, sum.count)
    statement.bind(6, sum.firstSequence)
    statement.bind(7, sum.lastSequence)
    statement.bind(8, sum.firstTime)
    statement.bind(9, sum.lastTime)
    try statement.run()
  }
}
