// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_slot_create(
  _ registry: cbr_registry, _ label: UnsafePointer<CChar>!,
  _ owner: cbr_owner, _ out: UnsafeMutablePointer<cbr_slot>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Slots.create(in: registry, label: label, owner: owner, out: out).inC
}

@c @implementation
package func cbr_slot_set(
  _ slot: cbr_slot, _ token: cbr_token
) -> cbr_status {
  Slots.set(slot, to: token).inC
}

@c @implementation
package func cbr_slot_get(_ slot: cbr_slot) -> cbr_token { Slots.get(slot) }

@c @implementation
package func cbr_slot_enter(
  _ slot: cbr_slot, _ interface: UnsafePointer<cbr_interface>!,
  _ method: UInt32, _ call: UnsafeMutablePointer<cbr_call>!
) -> cbr_status {
  guard let call else { return refuse("call is NULL") }
  call.record.pointee = .empty
  var description: InterfaceDescription?
  if let interface {
    description = InterfaceDescription(interface)
    guard description != nil else {
      return refuse("interface->size is not one that this library knows")
    }
  }
  return Slots.enter(slot, description, method: method, call: call.record).inC
}

@c @implementation
package func cbr_slot_on_clear(
  _ slot: cbr_slot, _ observer: cbr_token
) -> cbr_status {
  Slots.observe(slot, by: observer).inC
}
