// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_registry_open(
  _ options: UnsafePointer<cbr_registry_options>!,
  _ out: UnsafeMutablePointer<cbr_registry>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  var chosen = RegistryOptions()
  if let options {
    guard StructureSize.isKnown(options) else {
      return refuse("options.size is not one that this library knows")
    }
    chosen.label = options.pointee.label
    chosen.historyPath = options.pointee.history_path
    chosen.level = options.pointee.level
    chosen.strictness = options.pointee.strictness
    chosen.ringBytes = options.pointee.ring_bytes
    chosen.callsPerSecond = options.pointee.calls_per_second
    chosen.blockTimeoutNanoseconds = options.pointee.block_timeout_ns
    chosen.maxBytes = options.pointee.max_bytes
    chosen.maxCalls = options.pointee.max_calls
    chosen.maxEvents = options.pointee.max_events
    chosen.maxCallAge = options.pointee.max_call_age_ns
    chosen.maxEventAge = options.pointee.max_event_age_ns
    chosen.callPolicy = options.pointee.calls_overflow
    chosen.eventPolicy = options.pointee.events_overflow
    chosen.historyChanged = unsafeBitCast(
      options.pointee.history_changed, to: StateChanged?.self)
    chosen.historyContext = options.pointee.history_context
    chosen.ringDirectory = options.pointee.ring_directory
    chosen.emissionLimit = options.pointee.emission_depth
    guard options.pointee.reserved == 0 else {
      return refuse("options.reserved is not 0")
    }
  }
  return Opening.open(chosen, out: out).inC
}

@c @implementation
package func cbr_registry_close(
  _ registry: cbr_registry, _ timeout_ns: UInt64
) -> cbr_status {
  Closing.close(registry, timeoutNanoseconds: timeout_ns).inC
}

@c @implementation
package func cbr_registry_shared() -> cbr_registry { Sharing.registry() }

@c @implementation
package func cbr_registry_statistics(
  _ registry: cbr_registry, _ out: UnsafeMutablePointer<cbr_statistics>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  guard StructureSize.isKnown(out) else {
    return refuse("out->size is not one that this library knows")
  }
  let size = out.pointee.size
  out.pointee = cbr_statistics()
  let (status, statistics) = Statistics.read(registry)
  if let statistics {
    UnsafeMutableRawPointer(out).storeBytes(
      of: statistics, as: Statistics.self)
  }
  out.pointee.size = size
  return status.inC
}

@c @implementation
package func cbr_registry_each_live(
  _ registry: cbr_registry, _ visit: cbr_visitor!,
  _ context: UnsafeMutableRawPointer!
) -> cbr_status {
  Looking.eachLive(
    in: registry, visit: unsafeBitCast(visit, to: Visitor?.self),
    context: context
  ).inC
}
