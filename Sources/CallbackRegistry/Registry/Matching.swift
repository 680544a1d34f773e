// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Entering {
  /// Says whether a token is live and was registered with this type tag.
  ///
  /// It is not an attempt to call: nothing is counted, recorded or consumed.
  package static func matches(_ token: UInt64, tag: UInt64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(token, is: .token)
    } catch {
      return thread.fail(error, about: token)
    }
    guard let slot = Table.slot(of: token) else {
      return thread.fail(Access.absent(token), about: token)
    }
    guard let pin = thread.pin(token) else { return thread.fail(.noMemory) }
    cbr_light_fence()
    let isLive = slot.pointee.word.load(ordering: .acquiring) == token
    let isTagged =
      slot.pointee.mode.load(ordering: .relaxed) & Mode.tagged != 0
    let status: Status =
      !isLive
      ? reason(of: token, slot)
      : isTagged && slot.typeTag == tag ? .ok : .interface
    withdraw(pin, token, thread: thread)
    return status == .ok ? .ok : thread.fail(status, about: token)
  }
}
