// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CPlatform
import CallbackRegistry

@c @implementation
package func cbr_version() -> UnsafePointer<CChar>! { cString("0.1.0") }

@c @implementation
package func cbr_status_name(_ status: CInt) -> UnsafePointer<CChar>! {
  cString(Status(rawValue: status)?.name ?? "unknown")
}

@c @implementation
package func cbr_status_text(_ status: CInt) -> UnsafePointer<CChar>! {
  cString(Status(rawValue: status)?.text ?? "unknown status")
}

@c @implementation
package func cbr_last_error() -> UnsafePointer<CChar>! { LastError.text() }
