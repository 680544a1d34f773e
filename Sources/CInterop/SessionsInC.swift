// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_session_interface() -> UnsafePointer<cbr_interface>! {
  cbr_platform_session_interface().assumingMemoryBound(to: cbr_interface.self)
}

@c @implementation
package func cbr_session_create(
  _ registry: cbr_registry, _ options: UnsafePointer<cbr_session_options>!,
  _ out: UnsafeMutablePointer<cbr_session>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  guard let options else { return refuse("options is NULL") }
  guard StructureSize.isKnown(options) else {
    return refuse("options->size is not one that this library knows")
  }
  guard options.pointee.flags == 0 else {
    return refuse("options->flags has unknown bits")
  }
  var request = SessionRequest()
  request.label = options.pointee.label
  request.delegate = options.pointee.delegate
  request.owner = options.pointee.owner
  request.queue = options.pointee.queue
  request.file = options.pointee.file
  request.line = options.pointee.line
  return Sessions.create(in: registry, request, out: out).inC
}

@c @implementation
package func cbr_session_finish(_ session: cbr_session) -> cbr_status {
  Sessions.finish(session).inC
}

@c @implementation
package func cbr_session_cancel(_ session: cbr_session) -> cbr_status {
  Sessions.cancel(session).inC
}
