// SPDX-License-Identifier: Apache-2.0
//
// One history: what a recorder notes, and the database that it is kept in.
//
// Shared variables
//   references, stage, next   guarded by Monitor.histories
//   database                  whoever has the turn
//   orders                    guarded by the recorder's `writer` monitor:
//                             what the writer thread is asked for
//   reached                   guarded by `progress`: what it has done
//   written, aggregated ...   atomic counts; the writer adds, anyone reads
// Memory: the last reference's release asks the writer to end. It is freed by
// the writer when nobody waits for that, else by the one who waits.

import CPlatform
import Synchronization

/// The history of one file, or one in memory.
package struct History: ~Copyable {
  enum Stage {
    case opening
    case open
    case closing
  }

  /// What the writer is asked for.
  struct Orders {
    /// Flushes so far, and the last one that is to be synced.
    var flushes: UInt64 = 0
    var syncs: UInt64 = 0
    /// The process ends, or this history does.
    var isExiting = false
    var isClosing = false
    var closingDeadline = Deadline.never
  }

  /// What the writer has done, as a number of a flush.
  struct Reached {
    var flushes: UInt64 = 0
    var syncs: UInt64 = 0
    var failed: UInt64 = 0
    var isExitNoted = false
    var isClosed = false
    var isAbandoned = false
    var status = Status.ok
  }

  let recorder: RecorderPointer
  /// Absolute; nil in memory.
  let path: UnsafeMutablePointer<CChar>?
  /// Where its file of rings is made, with an ending slash; nil: beside it.
  let ringDirectory: UnsafeMutablePointer<CChar>?
  /// The name of the file of rings; nil without one.
  var ringPath: UnsafeMutablePointer<CChar>?
  let callsPerSecond: UInt64
  let limits: HistoryLimits
  let openedAt: TickClock.Sample
  let wallClockAtOpening: UInt64
  let runIdentity = RunIdentity()
  let progress: Monitor

  let turn: UnsafeMutablePointer<Turn>

  var database: Database?
  /// Which file it was when it was opened.
  var file: FileIdentity?
  var observers: Observers
  /// What a writer thread has left when it ended before the history.
  var idleWriter: UnsafeMutablePointer<Writer>?
  var references = 1
  var stage = Stage.opening
  var next: HistoryPointer?
  var orders = Orders()
  var reached = Reached()

  let isStarted = Atomic<Bool>(false)
  /// SQLite's code for why it could not be written the last time; 0: it could.
  let faultCode = Atomic<Int32>(0)
  let written = Atomic<UInt64>(0)
  let aggregated = Atomic<UInt64>(0)
  /// The length of the write-ahead log in pages.
  let logPages = Atomic<UInt32>(0)

  init(
    recorder: RecorderPointer, path: UnsafeMutablePointer<CChar>?,
    ringDirectory: UnsafeMutablePointer<CChar>?,
    callsPerSecond: UInt64, limits: HistoryLimits, progress: Monitor,
    turn: UnsafeMutablePointer<Turn>, observers: Observers
  ) {
    self.recorder = recorder
    self.path = path
    self.ringDirectory = ringDirectory
    self.callsPerSecond = callsPerSecond
    self.limits = limits
    self.progress = progress
    self.turn = turn
    self.observers = observers
    openedAt = TickClock.sample()
    wallClockAtOpening = WallClock.offset
  }
}

package typealias HistoryPointer = UnsafeMutablePointer<History>

// Methods of the pointer, not of the structure: several threads are in them
// at once, and each access to a field must be one of its own.
extension UnsafeMutablePointer where Pointee == History {
  package var recorder: RecorderPointer { pointee.recorder }

  package func retain() {
    Monitor.histories.locked { addReferences(1) }
  }

  /// Counts references up or down.
  ///
  /// Monitor.histories is held.
  func addReferences(_ change: Int) {
    // Not by +=, which is an access to the whole structure.
    pointee.references = pointee.references + change
  }

  /// What has become of the events so far.
  package func counts() -> HistoryCounts {
    var counts = HistoryCounts()
    let recorder = pointee.recorder
    // What was done first, so that it is never more than what was to do.
    counts.written = pointee.written.load(ordering: .relaxed)
    counts.aggregated = pointee.aggregated.load(ordering: .relaxed)
    counts.lost =
      recorder.lostEvents
      &+ recorder.pointee.withoutRing.load(ordering: .relaxed)
    var ring = recorder.firstRing
    if ring != nil {
      counts.state = recorder.pointee.state.load(ordering: .relaxed)
    }
    if recorder.pointee.file != nil {
      let unprotected = recorder.pointee.unprotected.load(ordering: .relaxed)
      counts.protection = unprotected > 0 ? .inPart : .on
    }
    while let each = ring {
      counts.emitted &+= each.pointee.emitted.load(ordering: .relaxed)
      ring = each.pointee.next
    }
    counts.emitted &+= recorder.pointee.withoutRing.load(ordering: .relaxed)
    counts.emitted &+= recorder.pointee.monitor.locked {
      recorder.pointee.aggregates.total
    }
    return counts
  }
}
