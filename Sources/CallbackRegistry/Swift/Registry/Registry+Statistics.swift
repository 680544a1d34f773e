// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    /// Counters of a registry, and some of the whole process.
    public struct Statistics: Sendable, Hashable {
      /// What has become of the history.
      public enum History: Sendable, Hashable {
        /// Nothing was ever recorded.
        case off
        /// It is written.
        case good
        /// It cannot be written; losses are counted.
        case degraded
      }

      /// Whether what is recorded and not yet written survives the process's
      /// death.
      public enum CrashProtection: Sendable, Hashable {
        /// The history is in memory, or no file could be made beside it.
        case off
        /// The disk had no room for what some threads record.
        case inPart
        /// It does.
        case on
      }

      /// Callbacks that are live.
      public let liveTokens: UInt64
      /// Owners that are live.
      public let liveOwners: UInt64
      /// Holds that C has taken.
      public let liveLeases: UInt64
      /// Dead callbacks that nobody has yet found to be quiescent.
      public let unsettled: UInt64
      /// Callbacks registered since the registry was opened.
      public let registered: UInt64
      /// Callbacks ended.
      public let ended: UInt64
      /// Attempts to call that were refused.
      public let refused: UInt64
      /// Calls whose thread ended or jumped out of them.
      public let abandoned: UInt64
      /// Handles that the registry can hold without growing.
      public let slots: UInt64
      /// Slots that are used up for good.
      public let retiredSlots: UInt64
      /// Bytes of memory for slots.
      public let memoryBytes: UInt64
      /// Threads of the process that use the library now.
      public let threads: UInt64
      /// Heavy fences in the process so far.
      public let heavyFences: UInt64
      /// Events of the registry's history.
      public let eventsEmitted: UInt64
      /// Events that are rows now.
      public let eventsWritten: UInt64
      /// Calls that were counted instead of written.
      public let eventsAggregated: UInt64
      /// Events that could not be kept.
      public let eventsLost: UInt64
      /// What has become of the history.
      public let history: History
      /// Whether what is recorded and not yet written survives the process's
      /// death.
      public let crashProtection: CrashProtection
      /// Whether calls get by without a fence of the processor.
      public let isAsymmetric: Bool
    }

    /// A snapshot of the counters; not one instant for all of them.
    ///
    /// - Throws: `closed`, `forked`.
    public var statistics: Statistics {
      get throws(RegistryError) {
        let (status, read) = CallbackRegistry.Statistics.read(handle)
        guard let read else { throw RegistryError(status, about: handle) }
        return Statistics(read)
      }
    }
  }

  extension Registry.Statistics.History {
    init(_ state: UInt32) {
      self =
        switch state {
        case 0: .off
        case 1: .good
        default: .degraded
        }
    }
  }

  extension Registry.Statistics {
    fileprivate init(_ read: Statistics) {
      liveTokens = read.liveTokens
      liveOwners = read.liveOwners
      liveLeases = read.liveLeases
      unsettled = read.unsettled
      registered = read.registered
      ended = read.ended
      refused = read.refused
      abandoned = read.abandoned
      slots = read.slots
      retiredSlots = read.retiredSlots
      memoryBytes = read.memoryBytes
      threads = read.threads
      heavyFences = read.heavyFences
      eventsEmitted = read.eventsEmitted
      eventsWritten = read.eventsWritten
      eventsAggregated = read.eventsAggregated
      eventsLost = read.eventsLost
      history = History(read.historyState)
      crashProtection =
        switch read.crashProtection {
        case 0: .off
        case 1: .inPart
        default: .on
        }
      isAsymmetric = read.asymmetric != 0
    }
  }
#endif
