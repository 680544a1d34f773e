// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension CallQueue {
    /// Delivers what waits in a pumped queue, on the calling thread.
    ///
    /// What is posted meanwhile is left for the next time. While another call
    /// of this function is delivering, that goes on until the queue is empty,
    /// and this one delivers nothing.
    ///
    /// - Parameter limit: How many at most, dropped ones counted; 0: all that
    ///   wait now.
    /// - Returns: How many were delivered or dropped.
    /// - Throws: `stale`; `wrongThread` when the queue is not pumped by its
    ///   user; `outOfMemory` when a call could not be delivered, which is the
    ///   next one still; `forked`.
    @discardableResult
    public func run(limit: Int = 0) throws(RegistryError) -> Int {
      var ran = 0
      let status = Queues.run(handle, limit: max(limit, 0), ran: &ran)
      switch status {
      case .ok, .pending, .deferred: return ran
      default: throw RegistryError(status, about: handle)
      }
    }

    /// A file descriptor that is readable while something waits in a pumped
    /// queue, for `poll`, `epoll` and event loops; nil for other queues, and
    /// when it is dead.
    ///
    /// It is the queue's: do not read or close it, and stop polling before the
    /// queue ends. A forked child does not have it.
    public var descriptor: Int32? { Queues.descriptor(of: handle).descriptor }
  }
#endif
