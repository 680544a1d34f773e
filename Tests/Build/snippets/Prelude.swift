// SPDX-License-Identifier: Apache-2.0
//
// What the examples in documentation comments take for granted: the names that
// are used in them and not declared there. They are compiled, not run.

import CallbackRegistry

package final class Download: Sendable {
  package func show(_ fraction: Double) {}
}

package protocol DownloadDelegate: AnyObject, Sendable {
  func didReceive(_ bytes: [UInt8])
  func shouldGoOn() -> Bool
}

package final class Window: DownloadDelegate, SessionDelegate {
  package func didReceive(_ bytes: [UInt8]) {}
  package func shouldGoOn() -> Bool { true }
  package func task(_ task: SessionTask, didComplete end: SessionTask.End) {}
}

package func missing<Value>() -> Value { fatalError("it is not run") }

package let registry: Registry = missing()
package let callbacks: Owner = missing()
package let download: Download = missing()
package let view: Download = missing()
package let window: Window = missing()
package let bytes: [UInt8] = missing()
package let progress: Token<Double, Void> = missing()
package let question: Token<String, String> = missing()
package let token: Token<Double, String> = missing()
