// SPDX-License-Identifier: Apache-2.0
//
// The thread of a queue that is not pumped. It has a lease on the queue, and
// drops it when that has ended; so whoever waits for the queue waits until the
// thread is done with it. It pins the queue only while it delivers.

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Starts the thread, and waits until it has what it needs; false without
  /// memory.
  func startThread() -> Bool {
    pointee.thread = .starting
    pointee.body = { argument in
      argument?.assumingMemoryBound(to: QueueRecord.self).runThread()
    }
    guard cbr_thread_start_delivering(pointee.body, self) else {
      return false
    }
    return pointee.monitor.locked {
      while pointee.thread == .starting {
        _ = pointee.monitor.wait(until: .after(.max))
      }
      return pointee.thread == .running
    }
  }

  /// Leaves the record of a queue that was not made to its thread.
  func discardThread() {
    pointee.monitor.locked {
      pointee.thread = .failed
      pointee.monitor.wake()
    }
  }

  private func runThread() {
    let thread = Process.currentThread()
    pointee.monitor.locked {
      if pointee.thread == .starting {
        pointee.thread = thread == nil ? .failed : .running
        pointee.monitor.wake()
      }
    }
    guard let thread else { return }
    while awaitMessages() {
      var ran = 0
      _ = Queues.run(
        pointee.handle, limit: 0, ran: &ran, byItsThread: true)
      // In a forked child there is no such queue.
      guard ThreadPointer.current == thread else { return }
    }
    guard pointee.thread == .running else { return destroy() }
    let handle = pointee.handle
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    if Protocol.dropLease(slot, handle: handle) == .claimed {
      Finishing.finish(handle, thread: thread)
    }
  }

  /// False when the queue has ended.
  private func awaitMessages() -> Bool {
    pointee.monitor.locked {
      while true {
        if pointee.isEnded || pointee.thread == .failed { return false }
        if waitingCount > 0 || hasErrands { return true }
        pointee.isAsleep = true
        pointee.armedTime = pointee.alarmTime.load(ordering: .relaxed)
        _ = pointee.monitor.wait(
          until: Deadline(nanoseconds: pointee.armedTime))
        pointee.isAsleep = false
      }
    }
  }
}
