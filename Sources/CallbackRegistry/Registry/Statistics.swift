// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Counters of a registry and of the process.
///
/// The layout is that of `cbr_statistics`.
package struct Statistics {
  package var size: Int
  package var liveTokens: UInt64
  package var liveOwners: UInt64
  package var liveLeases: UInt64
  package var unsettled: UInt64
  package var registered: UInt64
  package var ended: UInt64
  package var refused: UInt64
  package var abandoned: UInt64
  package var slots: UInt64
  package var retiredSlots: UInt64
  package var memoryBytes: UInt64
  package var threads: UInt64
  package var heavyFences: UInt64
  package var forkHandlers: UInt64
  package var eventsEmitted: UInt64
  package var eventsWritten: UInt64
  package var eventsAggregated: UInt64
  package var eventsLost: UInt64
  package var historyState: UInt32
  package var asymmetric: UInt32
  package var crashProtection: UInt32
  package var reserved: UInt32
  package var liveSlots: UInt64
  package var liveSignals: UInt64
  package var liveQueues: UInt64
  package var liveSessions: UInt64
  package var liveTasks: UInt64
  package var liveReplies: UInt64
  package var liveThunks: UInt64
}

extension Statistics {
  package static func read(
    _ handle: UInt64
  ) -> (status: Status, statistics: Statistics?) {
    guard let thread = Process.currentThread() else { return (.noMemory, nil) }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      let access = try Access.registry(handle, thread: thread)
      return (.ok, access.registry.statistics())
    } catch {
      return (thread.fail(error, about: handle), nil)
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  fileprivate func statistics() -> Statistics {
    let process = ProcessState.shared
    let history = pointee.history.counts()
    return pointee.lock.locked {
      Statistics(
        size: MemoryLayout<Statistics>.size,
        liveTokens: pointee.live.tokens, liveOwners: pointee.live.owners,
        liveLeases: pointee.live.leases,
        unsettled: UInt64(pointee.parked.count),
        registered: pointee.registered, ended: pointee.ended,
        refused: pointee.refused.load(ordering: .relaxed),
        abandoned: pointee.abandoned.load(ordering: .relaxed),
        slots: pointee.chunkCount * UInt64(Chunk.slotCount) - pointee.retired,
        retiredSlots: pointee.retired,
        memoryBytes: pointee.chunkCount * UInt64(Chunk.bytes),
        threads: UInt64(process.pointee.threadCount.load(ordering: .relaxed)),
        heavyFences: process.pointee.heavyFences.load(ordering: .relaxed),
        forkHandlers: cbr_fork_handlers(),
        eventsEmitted: history.emitted, eventsWritten: history.written,
        eventsAggregated: history.aggregated, eventsLost: history.lost,
        historyState: history.state,
        asymmetric: cbr_is_asymmetric() ? 1 : 0,
        crashProtection: history.protection.rawValue, reserved: 0,
        liveSlots: pointee.live.slots, liveSignals: pointee.live.signals,
        liveQueues: pointee.live.queues,
        liveSessions: pointee.live.sessions, liveTasks: pointee.live.tasks,
        liveReplies: pointee.live.replies, liveThunks: pointee.live.thunks)
    }
  }
}
