// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_register(
  _ registry: cbr_registry, _ what: UnsafePointer<cbr_registration>!,
  _ out: UnsafeMutablePointer<cbr_token>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  return withRequest(what) { request in
    Registering.register(in: registry, request, out: out).inC
  }
}

/// Reads what is to be registered, or refuses it.
func withRequest(
  _ what: UnsafePointer<cbr_registration>?,
  _ body: (RegistrationRequest) -> cbr_status
) -> cbr_status {
  guard let what else { return refuse("what is NULL") }
  guard StructureSize.isKnown(what) else {
    return refuse("what->size is not one that this library knows")
  }
  guard what.pointee.reserved == 0 else {
    return refuse("what->reserved is not 0")
  }
  var registration = RegistrationRequest()
  if let interface = what.pointee.interface {
    guard let description = InterfaceDescription(interface) else {
      return refuse("interface->size is not one that this library knows")
    }
    registration.interface = description
  }
  registration.label = what.pointee.label
  registration.function = unsafeBitCast(
    what.pointee.function, to: UnsafeRawPointer?.self)
  registration.methods = UnsafeRawPointer(what.pointee.methods)?
    .assumingMemoryBound(to: UnsafeRawPointer?.self)
  registration.context = what.pointee.context
  registration.destroy = what.pointee.destroy
  registration.owner = what.pointee.owner
  registration.typeTag = what.pointee.type_tag
  registration.flags = what.pointee.flags
  registration.line = what.pointee.line
  registration.file = what.pointee.file
  registration.level = what.pointee.level
  registration.queue = what.pointee.queue
  return body(registration)
}
