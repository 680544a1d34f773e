// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Asking something of a token without calling it: nothing is counted, recorded
/// or consumed.
extension Entering {
  /// Says whether a token has a method.
  package static func responds(
    _ token: UInt64, _ description: InterfaceDescription, method: UInt32
  ) -> Status {
    ask(token) { slot, mode, thread in
      slot.method(description, method, mode: mode, thread: thread).status
    }
  }

  /// Says whether a token is live and was registered with this type tag.
  package static func matches(_ token: UInt64, tag: UInt64) -> Status {
    ask(token) { slot, mode, _ in
      mode & Mode.tagged != 0 && slot.typeTag == tag ? .ok : .interface
    }
  }

  /// Answers a question about a token while it is pinned and live.
  private static func ask(
    _ token: UInt64,
    _ question: (SlotPointer, UInt32, ThreadPointer) -> Status
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    let slot: SlotPointer
    do throws(Status) {
      slot = try self.slot(of: token)
    } catch {
      return thread.fail(error, about: token)
    }
    guard let pin = thread.pin(token) else { return thread.fail(.noMemory) }
    cbr_light_fence()
    let isLive = slot.pointee.word.load(ordering: .acquiring) == token
    let status =
      isLive
      ? question(slot, slot.pointee.mode.load(ordering: .relaxed), thread)
      : reason(of: token, slot)
    withdraw(pin, token, thread: thread)
    return status == .ok ? .ok : thread.fail(status, about: token)
  }

  /// The slot of a token, which may be dead or another's by now.
  static func slot(of token: UInt64) throws(Status) -> SlotPointer {
    try HandleForm.check(token, is: .token)
    guard let slot = Table.slot(of: token) else { throw Access.absent(token) }
    return slot
  }
}
