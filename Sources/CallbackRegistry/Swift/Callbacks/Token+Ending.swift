// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Token {
    /// Ends the callback: after this has returned, no call that had not begun
    /// will begin.
    ///
    /// The closure, and with it what it captured, is released when no call is
    /// running any more: here, or where the last call returns. Ending twice is
    /// harmless. It may be done anywhere, also inside the callback itself.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: How long to wait for calls that are running on other
    ///     threads; nil does not wait at all. Do not hold a lock that the
    ///     callback takes.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }
  }
#endif
