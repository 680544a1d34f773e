// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Whether a handle is live at this moment: advice.
///
/// It takes no pin, no lock and no memory, so it may be asked in a signal
/// handler.
package enum Liveness {
  @inline(__always)
  package static func isLive(_ handle: UInt64) -> Bool {
    guard handle & Handle.stateMask == 0, let slot = Table.slot(of: handle),
      slot.pointee.word.load(ordering: .acquiring) == handle
    else { return false }
    // A free slot's word has no kind, and would match itself.
    return Handle.hasKind(handle)
      && slot.pointee.mode.load(ordering: .relaxed) & Mode.closing == 0
  }
}
