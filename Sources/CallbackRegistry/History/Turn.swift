// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Who uses a connection: one at a time.
///
/// The writer takes a turn for each batch and lets everyone else who waits go
/// first, so that a reader waits for one batch at most. Guarded by `monitor`.
struct Turn {
  let monitor: Monitor
  var isTaken = false
  var readers = 0

  init(monitor: Monitor) { self.monitor = monitor }
}

// Methods of the pointer, not of the structure: several threads are in them
// at once, and each access to a field must be one of its own (which += is not).
extension UnsafeMutablePointer where Pointee == Turn {
  func takeAsWriter() {
    pointee.monitor.lock()
    while pointee.isTaken || pointee.readers > 0 {
      _ = pointee.monitor.wait(until: .never)
    }
    pointee.isTaken = true
    pointee.monitor.unlock()
    cbr_database_enter()
  }

  /// False: the deadline came first.
  func takeAsReader(until deadline: Deadline) -> Bool {
    guard waitAsReader(until: deadline) else { return false }
    cbr_database_enter()
    return true
  }

  private func waitAsReader(until deadline: Deadline) -> Bool {
    pointee.monitor.lock()
    defer { pointee.monitor.unlock() }
    pointee.readers = pointee.readers + 1
    defer { pointee.readers = pointee.readers - 1 }
    while pointee.isTaken {
      guard pointee.monitor.wait(until: deadline) else {
        // The writer may be waiting for this reader alone.
        pointee.monitor.wake()
        return false
      }
    }
    pointee.isTaken = true
    return true
  }

  func give() {
    cbr_database_leave()
    pointee.monitor.lock()
    pointee.isTaken = false
    pointee.monitor.wake()
    pointee.monitor.unlock()
  }
}

extension Deadline {
  static var never: Deadline { Deadline(nanoseconds: .max) }
}
