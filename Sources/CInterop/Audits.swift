// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_audit_level(
  _ handle: cbr_handle, _ level: UInt32
) -> cbr_status {
  Audit.setLevel(handle, level).inC
}

@c @implementation
package func cbr_audit_note(
  _ registry: cbr_registry, _ token: cbr_token,
  _ text: UnsafePointer<CChar>!
) -> cbr_status {
  Audit.note(in: registry, about: token, text).inC
}

@c @implementation
package func cbr_audit_flush(
  _ registry: cbr_registry, _ level: UInt32, _ timeout_ns: UInt64,
  _ achieved: UnsafeMutablePointer<UInt64>!
) -> cbr_status {
  var count: UInt64 = 0
  let status = Audit.flush(
    registry, level: level, until: Deadline.after(timeout_ns),
    achieved: &count)
  if let achieved { achieved.pointee = count }
  return status.inC
}
