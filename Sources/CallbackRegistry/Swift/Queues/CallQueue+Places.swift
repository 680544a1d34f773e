// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  import Dispatch

  extension CallQueue {
    /// Where a queue's calls are delivered.
    public struct Place: Sendable {
      enum Kind: Sendable {
        case thread
        case pumped
        /// Jobs that deliver are given to a closure, which has them run there.
        case elsewhere(QueuePump.Submit)
      }

      let kind: Kind

      /// On a thread of the library's, one for the queue.
      public static let thread = Place(kind: .thread)

      /// Where the program calls ``CallQueue/run(limit:)``.
      public static let pumped = Place(kind: .pumped)

      /// On the main actor.
      ///
      /// Callbacks that were registered by
      /// ``Registry/registerOnMain(_:owner:options:level:file:line:_:)`` can be
      /// called there.
      public static let main = Place(
        kind: .elsewhere { job in Task { @MainActor in job() } })

      /// On a Dispatch queue, which may be a concurrent one: there is one call
      /// at a time.
      ///
      /// - Parameter queue: It is held.
      /// - Returns: The place.
      public static func dispatch(_ queue: DispatchQueue) -> Place {
        Place(kind: .elsewhere { job in queue.async { job() } })
      }

      /// On a serial executor, such as an actor's.
      ///
      /// - Parameter executor: It is held, and has to run what it is given.
      /// - Returns: The place.
      public static func executor(_ executor: any SerialExecutor) -> Place {
        let runner = Runner(executor)
        return Place(kind: .elsewhere { job in Task { await runner.run(job) } })
      }

      /// On a task executor.
      ///
      /// - Parameter executor: It is held, and has to run what it is given.
      /// - Returns: The place.
      public static func taskExecutor(_ executor: any TaskExecutor) -> Place {
        Place(
          kind: .elsewhere { job in Task(executorPreference: executor) { job() }
          })
      }
    }
  }

  extension CallQueue.Place {
    var hasThread: Bool {
      if case .thread = kind { return true }
      return false
    }

    /// Whether its user runs it.
    var isPumped: Bool {
      if case .pumped = kind { return true }
      return false
    }
  }

  /// Runs jobs on a serial executor.
  private actor Runner {
    private let executor: any SerialExecutor

    init(_ executor: any SerialExecutor) { self.executor = executor }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
      executor.asUnownedSerialExecutor()
    }

    func run(_ job: @Sendable () -> Void) { job() }
  }
#endif
