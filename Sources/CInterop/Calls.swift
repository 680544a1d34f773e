// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry
import Synchronization

@c @implementation
package func cbr_is_live(_ handle: cbr_handle) -> Bool {
  Liveness.isLive(handle)
}

@c @implementation
package func cbr_enter(
  _ token: cbr_token, _ call: UnsafeMutablePointer<cbr_call>!
) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  return cbr_status(Entering.enter(token, call: call.record))
}

@c @implementation
package func cbr_enter_typed(
  _ token: cbr_token, _ type_tag: UInt64,
  _ call: UnsafeMutablePointer<cbr_call>!
) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  return cbr_status(Entering.enter(token, tag: type_tag, call: call.record))
}

@c @implementation
package func cbr_enter_method(
  _ token: cbr_token, _ interface: UnsafePointer<cbr_interface>!,
  _ method: UInt32, _ call: UnsafeMutablePointer<cbr_call>!
) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  call.record.pointee = .empty
  guard let interface else { return refuse("interface is NULL") }
  guard let description = InterfaceDescription(interface) else {
    return refuse("interface->size is not one that this library knows")
  }
  return Entering.enterFully(
    token, .method(description, method), call: call.record
  ).inC
}

@c @implementation
package func cbr_leave(_ call: UnsafeMutablePointer<cbr_call>!) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  return cbr_status(Leaving.leave(call.record))
}

@c @implementation
package func cbr_responds(
  _ token: cbr_token, _ interface: UnsafePointer<cbr_interface>!,
  _ method: UInt32
) -> cbr_status {
  guard let interface else { return refuse("interface is NULL") }
  guard let description = InterfaceDescription(interface) else {
    return refuse("interface->size is not one that this library knows")
  }
  return Entering.responds(token, description, method: method).inC
}

@c @implementation
package func cbr_lease(
  _ token: cbr_token, _ out: UnsafeMutablePointer<cbr_lease_handle>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Leasing.begin(token, out: out).inC
}

@c @implementation
package func cbr_lease_get(
  _ lease: cbr_lease_handle, _ call: UnsafeMutablePointer<cbr_call>!
) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  return Leasing.get(lease, call: call.record).inC
}

@c @implementation
package func cbr_lease_end(_ lease: cbr_lease_handle) -> cbr_status {
  Leasing.end(lease).inC
}

@c @implementation
package func cbr_mark() -> Int { Leaving.mark() }

@c @implementation
package func cbr_unwind(_ mark: Int) -> cbr_status {
  Leaving.unwind(to: mark).inC
}
