// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_signal_create(
  _ registry: cbr_registry, _ label: UnsafePointer<CChar>!,
  _ owner: cbr_owner, _ out: UnsafeMutablePointer<cbr_signal>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  return Signals.create(in: registry, label: label, owner: owner, out: out).inC
}

@c @implementation
package func cbr_connect(
  _ signal: cbr_signal, _ what: UnsafePointer<cbr_registration>!,
  _ options: UnsafePointer<cbr_connection_options>!,
  _ out: UnsafeMutablePointer<cbr_token>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  var delivery = DeliveryPlace()
  if let options {
    guard StructureSize.isKnown(options) else {
      return refuse("options->size is not one that this library knows")
    }
    delivery.queue = options.pointee.queue
    delivery.copy = options.pointee.copy_argument
    delivery.free = options.pointee.free_argument
    delivery.bytes = options.pointee.argument_bytes
    guard options.pointee.flags == 0 else {
      return refuse("options->flags has unknown bits")
    }
  }
  return withRequest(what) { request in
    Signals.connect(
      request, to: signal, priority: options?.pointee.priority ?? 0,
      delivery: delivery, out: out
    ).inC
  }
}

@c @implementation
package func cbr_block(_ handle: cbr_handle) -> cbr_status {
  Signals.block(handle).inC
}

@c @implementation
package func cbr_unblock(_ handle: cbr_handle) -> cbr_status {
  Signals.unblock(handle).inC
}

@c @implementation
package func cbr_emit(
  _ signal: cbr_signal, _ argument: UnsafeMutableRawPointer!,
  _ result: UnsafeMutablePointer<cbr_emission>!
) -> cbr_status {
  emit(EmissionRequest(signal: signal, argument: argument), result)
}

@c @implementation
package func cbr_emit_combined(
  _ signal: cbr_signal, _ argument: UnsafeMutableRawPointer!,
  _ combine: cbr_combiner!, _ context: UnsafeMutableRawPointer!,
  _ result: UnsafeMutablePointer<cbr_emission>!
) -> cbr_status {
  guard combine != nil else { return refuse("combine is NULL") }
  return emit(
    EmissionRequest(
      signal: signal, argument: argument,
      combine: combine, context: context),
    result)
}

@inline(__always)
private func emit(
  _ what: EmissionRequest, _ result: UnsafeMutablePointer<cbr_emission>?
) -> cbr_status {
  var emission = EmissionCounts()
  if let result {
    guard StructureSize.isKnown(result) else {
      return refuse("result->size is not one that this library knows")
    }
  }
  let status = Emitting.emit(what, result: &emission)
  if let result {
    result.pointee.called = emission.called
    result.pointee.blocked = emission.blocked
    result.pointee.stopped_by = emission.stoppedBy
    result.pointee.queued = emission.queued
    result.pointee.refused = emission.refused
  }
  return status.inC
}
