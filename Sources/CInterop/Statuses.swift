// SPDX-License-Identifier: Apache-2.0

internal import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_version() -> UnsafePointer<CChar>! {
  Library.version.characters
}

@c @implementation
package func cbr_status_name(_ status: CInt) -> UnsafePointer<CChar>! {
  (Status(rawValue: status)?.name ?? "unknown").characters
}

@c @implementation
package func cbr_status_text(_ status: CInt) -> UnsafePointer<CChar>! {
  (Status(rawValue: status)?.text ?? "unknown status").characters
}

@c @implementation
package func cbr_last_error() -> UnsafePointer<CChar>! { LastError.text() }
