// SPDX-License-Identifier: Apache-2.0

/// A call that becomes a row.
///
/// Its number is `offset` after the batch's first.
struct CallRow {
  let time: UInt64
  let duration: UInt64
  let cell: UInt32
  let cursor: UInt32
  let offset: UInt32
}

/// An event of the control class that becomes a row.
struct ControlRow {
  static var noCell: UInt32 { .max }

  let time: UInt64
  let handle: UInt64
  let argument: UInt32
  let offset: UInt32
  let cell: UInt32
  let cursor: UInt32
  /// Where its record is, for the payload.
  let position: UInt64
  let ringSequence: UInt64
  let kind: UInt8
  let continuations: UInt8
  /// The row of the recording thread, known when threads have been written.
  var thread: Int64 = 0
}

/// Events that were lost one after another.
struct LossRow {
  static var noCursor: UInt32 { .max }

  let cursor: UInt32
  let first: UInt64
  let count: UInt64
  let firstTime: UInt64
  let lastTime: UInt64
  var isDropped = false
}

/// What has been read from the rings and is written in one transaction.
struct Batch: ~Copyable {
  static var rowLimit: Int { 8192 }
  /// Calls over the budget are no rows, but their records wait for the
  /// batch's end too.
  static var eventLimit: Int { 65_536 }
  static var lossLimit: Int { 256 }

  let calls: UnsafeMutablePointer<CallRow>
  let controls: UnsafeMutablePointer<ControlRow>
  let losses: UnsafeMutablePointer<LossRow>
  private(set) var callCount = 0
  private(set) var controlCount = 0
  private(set) var lossCount = 0
  var cells: Cells
  var events = 0
  /// Events without a row: counted calls, and changes of rows.
  var updates: UInt64 = 0
  /// Calls have no rows because the log has no room for them.
  var isUnderPressure = false
  var overBudget: UInt64 = 0
  var overRing: UInt64 = 0
  /// In nanoseconds, of calls that became rows.
  private(set) var firstCallTime: UInt64 = .max
  private(set) var lastCallTime: UInt64 = 0

  /// Nil without memory.
  init?() {
    let calls = Memory.allocate(CallRow.self, count: Self.rowLimit)
    let controls = Memory.allocate(ControlRow.self, count: Self.rowLimit)
    let losses = Memory.allocate(LossRow.self, count: Self.lossLimit)
    guard let calls, let controls, let losses, let cells = Cells() else {
      Memory.release(calls)
      Memory.release(controls)
      Memory.release(losses)
      return nil
    }
    self.calls = calls
    self.controls = controls
    self.losses = losses
    self.cells = cells
  }

  deinit {
    Memory.release(calls)
    Memory.release(controls)
    Memory.release(losses)
  }

  var rowCount: Int { callCount + controlCount }

  var isEmpty: Bool { events == 0 && lossCount == 0 }

  /// Whether any event fits: it can need a row, two cells and a loss.
  var hasRoom: Bool {
    rowCount < Self.rowLimit && events < Self.eventLimit
      && cells.count + 1 < Cells.limit && lossCount < Self.lossLimit
  }

  mutating func clear() {
    callCount = 0
    controlCount = 0
    lossCount = 0
    cells.clear()
    events = 0
    updates = 0
    overBudget = 0
    overRing = 0
    firstCallTime = .max
    lastCallTime = 0
  }

  @inline(__always)
  mutating func addCall(
    time: UInt64, duration: UInt64, cell: Int, cursor: UInt32
  ) {
    calls[callCount] = CallRow(
      time: time, duration: duration, cell: UInt32(truncatingIfNeeded: cell),
      cursor: cursor, offset: UInt32(truncatingIfNeeded: rowCount))
    callCount &+= 1
    firstCallTime = min(firstCallTime, time)
    lastCallTime = max(lastCallTime, time)
  }

  /// `row.offset` must be `rowCount`.
  mutating func add(_ row: ControlRow) {
    controls[controlCount] = row
    controlCount += 1
  }

  /// There is room.
  mutating func add(_ row: LossRow) {
    losses[lossCount] = row
    lossCount += 1
  }
}
