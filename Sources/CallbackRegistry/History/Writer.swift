// SPDX-License-Identifier: Apache-2.0
//
// The thread that reads the rings of one history and writes its database.
//
// Each batch is one transaction, which also holds how far each ring was read
// and how far the sequence has come. What a batch has read is forgotten by
// the rings only after it is committed, and read again when it is not: so an
// event is written exactly once, or is still where it was.
//
// A batch goes through these steps, each in a file of its own:
//
//     lookAtRings, gather       without SQLite: rings to rows and cells
//     writeIdentities           labels, sites, rings and threads
//     writeCells                what is added to the rows of handles
//     writeRows                 calls and control events
//     writeAccounts             aggregates, losses, positions, clock, faults
//     writeBlock                tamper evidence
//     commit or revert

import CPlatform
import Synchronization

struct Writer: ~Copyable {
  let history: HistoryPointer
  let recorder: RecorderPointer
  var connection: Connection
  var run: Int64
  /// The rings are those of a process that has died (Recovery.swift).
  let isRecovering: Bool

  var statements: Statements
  var segments: Segments
  var batch: Batch
  var cursors = CheckedArray<Cursor>()
  var merge = Merge()
  var clock: TickClock
  var budget: Budget
  var tokens: TokenCache
  var callbacks = Names()
  var sites = Names()
  var refusals: RefusalTable
  let scratch: Scratch
  var chain: BlockChain
  var sealing: Sealing

  /// No event past this is taken at its first sight.
  var watermark: UInt64 = 0
  /// Without memory for cursors, rings are left unread.
  var areRingsMissing = false
  /// Events of threads that could not get a ring.
  var withoutRing = Ahead<UInt64>(0)
  var aggregates: Aggregates
  /// A pair of clock stamps that has no row yet.
  var sync: TickClock.Sample?
  /// The wall clock's offset when the last one was written.
  var wallClock: Ahead<UInt64>
  var fault = Fault()
  /// The last flush that was asked for, that was done, and that was synced.
  var flushing: UInt64 = 0
  var settled: UInt64 = 0
  var synced: UInt64 = 0
  var isExitNoted = false
  /// Rings in memory that `run` and `fault` tell of.
  var notedUnprotected = Ahead<UInt32>(0)
  /// What observers were told.
  var toldState = Recorder.State.good
  var toldLost: UInt64 = 0
  var toldAt: UInt64 = 0
  /// When closing began.
  var closingSince: UInt64?
  /// When a batch was last written.
  var lastWriting: UInt64
  /// The size of the log and of what is beside the database.
  var bytesBeside: UInt64 = 0
  /// When it was last looked at, and for what dead processes have left there.
  var lastLooking: UInt64
  /// How long the last rest was to be.
  var restBefore: UInt64 = 10_000_000
  /// How full the fullest ring was since the last rest, in 1/256.
  var fullness: UInt64 = 0
  /// The length of the log when it was last copied.
  var checkpointedPages: UInt32 = 0
  /// Somebody reads what keeps the log from being used again.
  var isLogPinned = false
  /// The log's name, and which file that was when it was last looked at.
  let logName: Scratch
  var log: FileIdentity?

  /// Prepares everything that writing needs.
  ///
  /// The clock is that of the rings' process, if it has died.
  init(
    _ history: HistoryPointer, database: Database,
    recovering deadClock: consuming TickClock? = nil
  ) throws(DatabaseError) {
    isRecovering = deadClock != nil
    let isInFile = history.pointee.path != nil || deadClock != nil
    guard let batch = Batch(), let tokens = TokenCache(),
      let refusals = RefusalTable(),
      let clock = deadClock
        ?? TickClock(
          from: history.pointee.openedAt, file: history.recorder.fileHeader)
    else { throw .noMemory }
    let scratch = try Scratch(bytes: EventLayout.longestPayload + 1)
    let chain = try BlockChain.make(isInFile: isInFile)
    let sealing = try Sealing(isInFile ? database.connection.lease : nil)
    let logName = try Scratch(bytes: 8_192)
    var text = logName.text
    if let path = history.pointee.path {
      text.append(path)
      text.append("-wal")
    }
    let segments = try Segments(
      of: database.connection, limits: history.pointee.limits)
    let statements = try Statements.prepare(
      on: database.connection, segment: segments.last)
    self.history = history
    recorder = history.recorder
    connection = database.connection
    run = database.run
    self.statements = statements
    self.segments = segments
    self.batch = batch
    self.clock = clock
    self.tokens = tokens
    self.refusals = refusals
    self.scratch = scratch
    self.chain = chain
    self.sealing = sealing
    self.logName = logName
    wallClock = Ahead(history.pointee.wallClockAtOpening)
    aggregates = Aggregates(now: history.pointee.openedAt.ticks)
    lastWriting = cbr_monotonic_nanoseconds()
    lastLooking = lastWriting
    budget = Budget(
      callsPerSecond: history.pointee.callsPerSecond, now: lastWriting)
  }
}
