// SPDX-License-Identifier: Apache-2.0

/// What the harness runs.
@_cdecl("bench_program")
public func program(_ count: Int32, _ arguments: UnsafeRawPointer) {
  do {
    try measureCalls()
    try measureEmissions()
  } catch {
    fatalError("\(error)")
  }
}
