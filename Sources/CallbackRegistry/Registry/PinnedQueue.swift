// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// A live queue that the calling thread pins.
package struct PinnedQueue: ~Copyable {
  package let record: QueuePointer
  let handle: UInt64
  let thread: ThreadPointer
  let pin: UInt32

  package init(_ handle: UInt64, thread: ThreadPointer) throws(Status) {
    try HandleForm.check(handle, is: .queue)
    guard let slot = Table.slot(of: handle) else {
      throw Access.absent(handle)
    }
    guard let pin = thread.pin(handle) else { throw .noMemory }
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == handle,
      let record = slot.queueRecord
    else {
      Entering.withdraw(pin, handle, thread: thread)
      throw Access.absent(handle)
    }
    self.record = record
    self.handle = handle
    self.thread = thread
    self.pin = pin
  }

  deinit { Entering.withdraw(pin, handle, thread: thread) }
}
