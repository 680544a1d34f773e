// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension CallQueue {
    /// What became of the calls that were posted to a queue.
    ///
    /// `posted` is the sum of `delivered`, `merged`, `droppedFull`,
    /// `droppedStale`, `droppedRefused`, `droppedEnded`, `waiting` and `taken`.
    public struct Statistics: Sendable, Hashable {
      /// Calls that the queue took.
      public let posted: UInt64
      /// Calls that have begun.
      public let delivered: UInt64
      /// Replaced by a later one (``Overflow/keepLatest``).
      public let merged: UInt64
      /// Dropped for a later one (``Overflow/dropOldest``).
      public let droppedFull: UInt64
      /// Dropped because their callback was dead.
      public let droppedStale: UInt64
      /// Dropped because their callback could not be called there.
      public let droppedRefused: UInt64
      /// Dropped with the queue.
      public let droppedEnded: UInt64
      /// Calls that wait now.
      public let waiting: UInt64
      /// Calls that were taken, and have not begun: 0 or 1.
      public let taken: UInt64
      /// What the inputs of those that wait count for.
      public let waitingBytes: UInt64
      /// The most calls that ever waited at a time.
      public let peakItems: UInt64
      /// The most that their inputs ever counted for.
      public let peakBytes: UInt64
      /// Threads that wait for room now.
      public let blocked: UInt64

      /// All that was dropped or merged.
      public var dropped: UInt64 {
        merged &+ droppedFull &+ droppedStale &+ droppedRefused
          &+ droppedEnded
      }
    }

    /// A snapshot of the counters, all of one instant.
    ///
    /// - Throws: `stale`, `forked`.
    public var statistics: Statistics {
      get throws(RegistryError) {
        let (status, counts) = Queues.counts(of: handle)
        guard let counts else { throw RegistryError(status, about: handle) }
        return Statistics(counts)
      }
    }
  }

  extension CallQueue.Statistics {
    fileprivate init(_ counts: QueueCounts) {
      posted = counts.posted
      delivered = counts.delivered
      merged = counts.merged
      droppedFull = counts.droppedFull
      droppedStale = counts.droppedStale
      droppedRefused = counts.droppedRefused
      droppedEnded = counts.droppedEnded
      waiting = counts.waiting
      taken = counts.taken
      waitingBytes = counts.waitingBytes
      peakItems = counts.peakItems
      peakBytes = counts.peakBytes
      blocked = counts.blocked
    }
  }
#endif
