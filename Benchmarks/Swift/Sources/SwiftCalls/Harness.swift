// SPDX-License-Identifier: Apache-2.0
//
// harness.h, and what every case calls.

typealias Run = @convention(c) (UInt64, UInt32) -> Void

@_silgen_name("bench_group")
func benchGroup(_ name: UnsafePointer<CChar>)
@_silgen_name("bench_add")
func benchAdd(_ name: UnsafePointer<CChar>, _ run: Run)
@_silgen_name("bench_measure")
func benchMeasure()
@_silgen_name("bench_work")
func benchWork(_ context: UnsafeMutableRawPointer)

// The harness keeps the pointer, and a static string lives for ever.
func name(_ text: StaticString) -> UnsafePointer<CChar> {
  UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

/// What callbacks work on.
///
/// Unchecked: the memory is only read.
final class Target: @unchecked Sendable {
  private let context = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)

  init() { context.initialize(to: 1) }

  deinit { context.deallocate() }

  @inline(__always)
  func work() { benchWork(context) }
}
