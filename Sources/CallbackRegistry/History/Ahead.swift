// SPDX-License-Identifier: Apache-2.0

/// A value that goes ahead in a batch, and is committed with it or goes back.
struct Ahead<Value> {
  private(set) var committed: Value
  var working: Value

  init(_ value: Value) {
    committed = value
    working = value
  }

  mutating func commit() { committed = working }
  mutating func revert() { working = committed }
}
