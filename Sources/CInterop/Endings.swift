// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_invalidate(
  _ handle: cbr_handle, _ reason: cbr_reason
) -> cbr_status {
  Ending.end(handle, reason: reason, waitingUntil: nil).inC
}

@c @implementation
package func cbr_invalidate_wait(
  _ handle: cbr_handle, _ reason: cbr_reason, _ timeout_ns: UInt64
) -> cbr_status {
  Ending.end(
    handle, reason: reason, waitingUntil: Deadline.after(timeout_ns)
  ).inC
}

@c @implementation
package func cbr_explain(
  _ handle: cbr_handle, _ text: UnsafeMutablePointer<CChar>!, _ size: Int,
  _ needed: UnsafeMutablePointer<Int>!
) -> cbr_status {
  var bytes = 0
  // A size_t past the largest Int comes as a negative one.
  let status = Explaining.explain(
    handle, text, size: size < 0 ? .max : size, needed: &bytes)
  if let needed { needed.pointee = bytes }
  return status.inC
}

@c @implementation
package func cbr_impact(
  _ handle: cbr_handle, _ visit: cbr_visitor!,
  _ context: UnsafeMutableRawPointer!
) -> cbr_status {
  Looking.impact(
    of: handle, visit: unsafeBitCast(visit, to: Visitor?.self),
    context: context
  ).inC
}
