// SPDX-License-Identifier: Apache-2.0
//
// What the examples in documentation comments take for granted: the names that
// are used in them and not declared there. They are compiled, not run.

import CallbackRegistry

final class Download: Sendable {
  func show(_ fraction: Double) {}
}

func missing<Value>() -> Value { fatalError("it is not run") }

let registry: Registry = missing()
let callbacks: Owner = missing()
let download: Download = missing()
let progress: Token<Double, Void> = missing()
let token: Token<Double, String> = missing()
