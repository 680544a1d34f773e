// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Queues: places where calls are delivered.
package enum Queues {
  package static func create(
    _ options: QueueOptions, in handle: UInt64,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    guard let record = QueuePointer.make(options) else {
      return thread.fail(.noMemory)
    }
    guard !options.hasThread || record.startThread() else {
      record.destroy()
      return thread.fail(.noMemory)
    }
    let status = Creating.create(
      .queue, in: handle, label: options.label, owner: options.owner, out: out
    ) { slot, registry, handle in
      record.pointee.monitor.locked {
        record.pointee.registry = registry
        record.pointee.handle = handle
      }
      slot.pointee.body = UnsafeMutableRawPointer(record)
      // The thread's.
      if options.hasThread { Protocol.addLease(slot, handle: handle) }
    }
    if status != .ok {
      options.hasThread ? record.discardThread() : record.destroy()
    }
    return status
  }

  /// What a program polls; nil for a queue that has a thread.
  package static func descriptor(
    of handle: UInt64
  ) -> (status: Status, descriptor: Int32?) {
    guard let thread = Process.currentThread() else { return (.noMemory, nil) }
    do throws(Status) {
      let queue = try PinnedQueue(handle, thread: thread)
      guard let wakeup = queue.record.pointee.wakeup else {
        throw thread.invalid("the queue has a thread, and no descriptor")
      }
      return (.ok, cbr_wakeup_descriptor(wakeup))
    } catch {
      return (thread.fail(error, about: handle), nil)
    }
  }

  /// A descriptor that is readable like the queue's own, and outlives it.
  ///
  /// It is the caller's to close; nil when there is none.
  package static func duplicateDescriptor(of handle: UInt64) -> Int32? {
    guard let thread = Process.currentThread(),
      let queue = try? PinnedQueue(handle, thread: thread),
      let wakeup = queue.record.pointee.wakeup
    else { return nil }
    let descriptor = cbr_wakeup_duplicate(wakeup)
    return descriptor < 0 ? nil : descriptor
  }

  /// Ends a queue when all that waits in it has been delivered.
  package static func finish(_ handle: UInt64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      let queue = try PinnedQueue(handle, thread: thread)
      let record = queue.record
      let status: Status = record.pointee.monitor.locked {
        guard !record.pointee.isFinishing else { return .already }
        record.pointee.isFinishing = true
        record.noteRoom()
        record.pointee.monitor.wake()
        if record.pointee.deliverer == thread { return .deferred }
        let isEmpty = record.waitingCount == 0 && !record.hasErrands
        return record.pointee.deliverer == nil && isEmpty ? .ok : .pending
      }
      guard status == .ok else { throw status }
    } catch {
      return thread.fail(error, about: handle)
    }
    let status = Ending.end(handle, reason: Reason.ended, waitingUntil: nil)
    // Only a poster is there still, which is about to be refused.
    return status == .pending ? .ok : status
  }

  package static func counts(
    of handle: UInt64
  ) -> (status: Status, counts: QueueCounts?) {
    guard let thread = Process.currentThread() else { return (.noMemory, nil) }
    do throws(Status) {
      let queue = try PinnedQueue(handle, thread: thread)
      let record = queue.record
      return (.ok, record.pointee.monitor.locked { record.countsNow() })
    } catch {
      return (thread.fail(error, about: handle), nil)
    }
  }
}
