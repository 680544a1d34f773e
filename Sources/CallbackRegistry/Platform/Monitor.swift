// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A lock with a condition.
///
/// A copy names the same lock.
package struct Monitor {
  private let raw: UnsafeMutableRawPointer

  /// Makes a monitor; nil without memory.
  ///
  /// Ends with `destroy`.
  package static func make() -> Monitor? {
    cbr_monitor_create().map(Monitor.init(raw:))
  }

  package func destroy() { cbr_monitor_destroy(raw) }

  package func lock() { cbr_monitor_lock(raw) }
  package func unlock() { cbr_monitor_unlock(raw) }

  /// Runs `body` with the lock held.
  ///
  /// `body` must not run user code (G13).
  @inline(__always)
  package func locked<Result>(_ body: () -> Result) -> Result {
    lock()
    defer { unlock() }
    return body()
  }

  /// Wakes every waiter.
  package func wake() { cbr_monitor_wake(raw) }

  /// Waits with the lock held until woken; false at the deadline.
  package func wait(until deadline: Deadline) -> Bool {
    cbr_monitor_wait(raw, deadline.nanoseconds)
  }
}

extension Monitor {
  /// Guards growth of the handle table and the list of thread records.
  package static var table: Monitor { ofProcess(Int(CBR_MONITOR_TABLE)) }
  /// Guards who waits for what.
  package static var waiting: Monitor { ofProcess(Int(CBR_MONITOR_WAITING)) }
  /// Guards the list of open histories.
  package static var histories: Monitor {
    ofProcess(Int(CBR_MONITOR_HISTORIES))
  }
  /// Guards the opening of the shared registry.
  package static var shared: Monitor { ofProcess(Int(CBR_MONITOR_SHARED)) }
  /// Guards the addresses of thunks.
  package static var thunks: Monitor { ofProcess(Int(CBR_MONITOR_THUNKS)) }

  private static func ofProcess(
    _ number: Int
  ) -> Monitor {
    Monitor(raw: cbr_monitor_of_process(Int32(truncatingIfNeeded: number)))
  }
}
