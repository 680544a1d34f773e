// SPDX-License-Identifier: Apache-2.0
//
// What the examples in documentation comments take for granted: the names that
// are used in them and not declared there. They are compiled, not run.

import CallbackRegistry

package final class Download: Sendable {
  package func show(_ fraction: Double) {}
}

package func missing<Value>() -> Value { fatalError("it is not run") }

package let registry: Registry = missing()
package let callbacks: Owner = missing()
package let download: Download = missing()
package let progress: Token<Double, Void> = missing()
package let token: Token<Double, String> = missing()
