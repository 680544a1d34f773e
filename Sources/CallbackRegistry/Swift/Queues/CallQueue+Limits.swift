// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension CallQueue {
    /// What becomes of a call for which there is no room.
    ///
    /// Before that, a call is looked for whose callback is dead, and dropped
    /// instead.
    public enum Overflow: Sendable, Hashable {
      /// Posting throws `full`.
      case fail
      /// Posting waits for room, and throws `timedOut` after that time. It
      /// blocks the thread: do not choose it for queues that tasks post to.
      case block(Duration)
      /// The call that waits longest is dropped.
      case dropOldest
      /// A callback has one call at most: a new one takes the place of the one
      /// that waits, also where there is room. Without one, posting throws
      /// `full`.
      case keepLatest
    }

    /// How much may wait in a queue.
    public struct Limits: Sendable, Hashable {
      /// Calls that wait; nil: any number.
      public var items: Int?
      /// What their inputs count for; nil: any size.
      public var bytes: Int?
      /// What becomes of more.
      public var overflow: Overflow

      /// Sets limits.
      ///
      /// - Parameters:
      ///   - items: Calls that wait, at least one; nil: any number.
      ///   - bytes: What their inputs count for, at least one; nil: any size.
      ///   - overflow: What becomes of more.
      public init(
        items: Int? = 1_024, bytes: Int? = 64 << 20,
        overflow: Overflow = .fail
      ) {
        self.items = items
        self.bytes = bytes
        self.overflow = overflow
      }
    }
  }

  extension CallQueue.Limits {
    func apply(to options: inout QueueOptions) {
      options.maxItems = items.map { UInt64(max($0, 1)) } ?? .max
      options.maxBytes = bytes.map { UInt64(max($0, 1)) } ?? .max
      switch overflow {
      case .fail: options.policy = .fail
      case .block(let time):
        options.policy = .block
        options.blockTimeoutNanoseconds = time.boundedNanoseconds
      case .dropOldest: options.policy = .dropOldest
      case .keepLatest: options.policy = .keepLatest
      }
    }
  }
#endif
