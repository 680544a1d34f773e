// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What ending something has come to.
  ///
  /// In every case but ``failed(_:)`` it is dead: no new call will begin.
  public enum Outcome: Sendable {
    /// Nothing is running any more, and the closures have been released.
    case ended
    /// Calls are running on other threads; the closures are released where the
    /// last of them returns.
    case pending
    /// The calling thread is inside it; the closures are released when that
    /// call returns. When it was waited for, nothing else is running.
    case deferred
    /// It was dead before, as told. When it was waited for, nothing is running.
    case already(Explanation)
    /// The time is over, and the calls that are named are still running.
    case timedOut(Explanation)
    /// Waiting would have closed a ring of threads, named here, that wait for
    /// each other. Calls are still running.
    case wouldDeadlock(Explanation)
    /// It could not be done: what is named was inherited through fork, or
    /// there is no memory.
    case failed(RegistryError)
  }

  extension Outcome {
    /// Ends a handle of any kind.
    static func ending(
      _ handle: UInt64, reason: EndReason, waiting timeout: Duration?
    ) -> Outcome {
      let deadline = timeout.map { Deadline.after($0.boundedNanoseconds) }
      let status = Ending.end(
        handle, reason: reason.number, waitingUntil: deadline)
      return Outcome(status, of: handle)
    }

    /// Reads the calling thread's last status.
    init(_ status: Status, of handle: UInt64) {
      self =
        switch status {
        case .ok: .ended
        case .pending: .pending
        case .deferred: .deferred
        case .timeout: .timedOut(Explanation.last(status, about: handle))
        case .wouldDeadlock:
          .wouldDeadlock(Explanation.last(status, about: handle))
        // What belonged to a closed registry has ended with it.
        case .already, .closed:
          .already(Explanation.last(status, about: handle))
        default: .failed(RegistryError(status, about: handle))
        }
    }
  }

  extension Outcome: CustomStringConvertible {
    /// What it means, in words.
    public var description: String {
      switch self {
      case .ended: "ended"
      case .pending: "ended; calls are running on other threads"
      case .deferred: "ended; the calling thread is inside it"
      case .already(let explanation): explanation.sentence
      case .timedOut(let explanation): explanation.sentence
      case .wouldDeadlock(let explanation): explanation.sentence
      case .failed(let error): error.explanation.sentence
      }
    }
  }

  extension Duration {
    /// Nanoseconds from 0 to all that 64 bits hold, which is without limit.
    var boundedNanoseconds: UInt64 {
      let (seconds, attoseconds) = components
      guard seconds >= 0, attoseconds >= 0 else { return 0 }
      let (whole, isTooMuch) = UInt64(seconds).multipliedReportingOverflow(
        by: 1_000_000_000)
      // What is below a nanosecond is a reason to wait for one.
      let rest = (UInt64(attoseconds) + 999_999_999) / 1_000_000_000
      let (sum, overflow) = whole.addingReportingOverflow(rest)
      return isTooMuch || overflow ? .max : sum
    }
  }
#endif
