// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_owner_create(
  _ registry: cbr_registry, _ label: UnsafePointer<CChar>!,
  _ out: UnsafeMutablePointer<cbr_owner>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Owners.create(in: registry, kind: .registry, label: label, out: out)
    .inC
}

@c @implementation
package func cbr_owner_create_child(
  _ parent: cbr_owner, _ label: UnsafePointer<CChar>!,
  _ out: UnsafeMutablePointer<cbr_owner>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Owners.create(in: parent, kind: .owner, label: label, out: out).inC
}

@c @implementation
package func cbr_owner_for_object(
  _ registry: cbr_registry, _ object: UnsafeRawPointer!,
  _ label: UnsafePointer<CChar>!, _ out: UnsafeMutablePointer<cbr_owner>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Owners.ofObject(
    UInt64(UInt(bitPattern: object)), in: registry, label: label, out: out
  ).inC
}

@c @implementation
package func cbr_object_died(
  _ registry: cbr_registry, _ object: UnsafeRawPointer!
) -> cbr_status {
  Owners.objectDied(UInt64(UInt(bitPattern: object)), in: registry).inC
}
