// SPDX-License-Identifier: Apache-2.0
//
// A plug-in in Swift. The host gives it an owner, to which it registers all
// that the host may call.
import CallbackRegistry

/// What the host looks up and calls once; returns a token, 0 on failure.
@c
public func plugin_start(
  registry: UInt64, owner: UInt64, tag: UInt64
) -> UInt64 {
  guard let owner = Owner(handle: owner) else { return 0 }
  do throws(RegistryError) {
    return try owner.registry.register("halve (Swift)", owner: owner) {
      (number: Double) in number / 2
    }.keep().handle
  } catch {
    print(error)
    return 0
  }
}
