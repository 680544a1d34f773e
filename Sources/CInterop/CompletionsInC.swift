// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_completion_create(
  _ registry: cbr_registry, _ what: UnsafePointer<cbr_registration>!,
  _ default_error: Int32, _ out: UnsafeMutablePointer<cbr_reply>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  return withRequest(what) { request in
    Completions.create(
      in: registry, request, defaultError: default_error, out: out
    ).inC
  }
}

@c @implementation
package func cbr_completion_send(
  _ completion: cbr_reply, _ error: Int32, _ value: UnsafeMutableRawPointer!
) -> cbr_status {
  Completions.send(completion, error: error, value: value).inC
}

@c @implementation
package func cbr_completion_set_timeout(
  _ completion: cbr_reply, _ queue: cbr_queue, _ timeout_ns: UInt64
) -> cbr_status {
  Completions.setTimeout(completion, on: queue, nanoseconds: timeout_ns).inC
}
