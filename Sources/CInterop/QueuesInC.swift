// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_queue_create(
  _ registry: cbr_registry, _ options: UnsafePointer<cbr_queue_options>!,
  _ out: UnsafeMutablePointer<cbr_queue>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  var chosen = QueueOptions()
  if let options {
    guard StructureSize.isKnown(options) else {
      return refuse("options->size is not one that this library knows")
    }
    let given = options.pointee
    guard given.kind <= 2 else {
      return refuse("options->kind is not one of CBR_QUEUE_PUMPED, _THREAD")
    }
    chosen.label = given.label
    chosen.owner = given.owner
    chosen.hasThread = given.kind == 2
    if given.overflow != 0 {
      guard let policy = QueuePolicy(rawValue: given.overflow) else {
        return refuse("options->overflow is not one of CBR_QUEUE_BLOCK, ...")
      }
      chosen.policy = policy
    }
    if given.max_items != 0 { chosen.maxItems = given.max_items }
    if given.max_bytes != 0 { chosen.maxBytes = given.max_bytes }
    if given.block_timeout_ns != 0 {
      chosen.blockTimeoutNanoseconds = given.block_timeout_ns
    }
  }
  return Queues.create(chosen, in: registry, out: out).inC
}

@c @implementation
package func cbr_post(
  _ queue: cbr_queue, _ token: cbr_token,
  _ message: UnsafePointer<cbr_message>!
) -> cbr_status {
  var request = PostRequest()
  request.message.token = token
  if let message {
    guard StructureSize.isKnown(message) else {
      return refuse("message->size is not one that this library knows")
    }
    guard message.pointee.reserved == 0 else {
      return refuse("message->reserved is not 0")
    }
    if let interface = message.pointee.interface {
      guard message.pointee.type_tag == 0 else {
        return refuse("type_tag is for a function, not an interface")
      }
      request.interface = InterfaceDescription(interface)
      guard request.interface != nil else {
        return refuse("interface->size is not one that this library knows")
      }
    } else if message.pointee.method != 0 {
      return refuse("method is given without an interface")
    }
    request.message.payload = message.pointee.payload
    request.message.bytes = message.pointee.payload_bytes
    request.message.free = message.pointee.free_payload
    request.message.method = message.pointee.method
    request.message.typeTag = message.pointee.type_tag
    request.message.invoke = unsafeBitCast(
      message.pointee.invoke, to: Invoke?.self)
  }
  return Queues.post(request, to: queue).inC
}

@c @implementation
package func cbr_queue_descriptor(_ queue: cbr_queue) -> Int32 {
  Queues.descriptor(of: queue).descriptor ?? -1
}

@c @implementation
package func cbr_queue_run(
  _ queue: cbr_queue, _ limit: Int, _ ran: UnsafeMutablePointer<Int>!
) -> cbr_status {
  var count = 0
  let status = Queues.run(queue, limit: limit, ran: &count)
  if let ran { ran.pointee = count }
  return status.inC
}

@c @implementation
package func cbr_queue_finish(_ queue: cbr_queue) -> cbr_status {
  Queues.finish(queue).inC
}

@c @implementation
package func cbr_queue_statistics(
  _ queue: cbr_queue, _ out: UnsafeMutablePointer<cbr_queue_counts>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  guard StructureSize.isKnown(out) else {
    return refuse("out->size is not one that this library knows")
  }
  let size = out.pointee.size
  out.pointee = cbr_queue_counts()
  out.pointee.size = size
  let (status, counts) = Queues.counts(of: queue)
  guard let counts else { return status.inC }
  out.pointee.posted = counts.posted
  out.pointee.delivered = counts.delivered
  out.pointee.merged = counts.merged
  out.pointee.dropped_full = counts.droppedFull
  out.pointee.dropped_stale = counts.droppedStale
  out.pointee.dropped_refused = counts.droppedRefused
  out.pointee.dropped_ended = counts.droppedEnded
  out.pointee.waiting = counts.waiting
  out.pointee.taken = counts.taken
  out.pointee.waiting_bytes = counts.waitingBytes
  out.pointee.peak_items = counts.peakItems
  out.pointee.peak_bytes = counts.peakBytes
  out.pointee.blocked = counts.blocked
  return status.inC
}
