// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_task_begin(
  _ session: cbr_session, _ options: UnsafePointer<cbr_task_options>!,
  _ out: UnsafeMutablePointer<cbr_task>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  var request = TaskRequest()
  if let options {
    guard StructureSize.isKnown(options) else {
      return refuse("options->size is not one that this library knows")
    }
    guard options.pointee.flags & ~UInt32(CBR_TASK_GATHER) == 0 else {
      return refuse("options->flags has unknown bits")
    }
    guard options.pointee.reserved == 0 else {
      return refuse("options->reserved is not 0")
    }
    request.label = options.pointee.label
    request.context = options.pointee.context
    request.destroy = options.pointee.destroy
    request.isGathering = options.pointee.flags != 0
    request.waitingLimit = Int(clamping: options.pointee.max_waiting_bytes)
    request.timeoutNanoseconds = options.pointee.timeout_ns
    request.replyTimeoutNanoseconds = options.pointee.reply_timeout_ns
    request.unanswered = options.pointee.unanswered
    request.file = options.pointee.file
    request.line = options.pointee.line
  }
  return Tasks.begin(in: session, request, out: out).inC
}

@c @implementation
package func cbr_task_respond(
  _ task: cbr_task, _ response: UnsafeRawPointer!, _ size: Int
) -> cbr_status {
  Tasks.respond(task, response, size: size).inC
}

@c @implementation
package func cbr_task_data(
  _ task: cbr_task, _ bytes: UnsafeRawPointer!, _ size: Int
) -> cbr_status {
  Tasks.data(task, bytes, size: size).inC
}

@c @implementation
package func cbr_task_complete(
  _ task: cbr_task, _ error: Int32
) -> cbr_status {
  Tasks.complete(task, error: error).inC
}

@c @implementation
package func cbr_task_cancel(_ task: cbr_task) -> cbr_status {
  Tasks.cancel(task).inC
}

@c @implementation
package func cbr_task_context(_ task: cbr_task) -> UnsafeMutableRawPointer! {
  Tasks.context(task)
}

@c @implementation
package func cbr_task_gathered(
  _ task: cbr_task, _ bytes: UnsafeMutablePointer<UnsafeRawPointer?>!,
  _ size: UnsafeMutablePointer<Int>!
) -> cbr_status {
  guard let bytes else { return refuse("bytes is NULL") }
  guard let size else { return refuse("size is NULL") }
  bytes.pointee = nil
  size.pointee = 0
  return Tasks.gathered(task, &bytes.pointee, &size.pointee).inC
}

@c @implementation
package func cbr_reply_send(
  _ reply: cbr_reply, _ disposition: cbr_disposition, _ successor: cbr_token
) -> cbr_status {
  Replies.send(reply, disposition, successor: successor).inC
}
