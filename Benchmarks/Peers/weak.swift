// SPDX-License-Identifier: Apache-2.0
//
// Swift: a weak reference that is taken for the time of a call, and a closure.

typealias Run = @convention(c) (UInt64, UInt32) -> Void

@_silgen_name("bench_add")
func bench_add(_ name: UnsafePointer<CChar>, _ run: Run)
@_silgen_name("bench_add_threads")
func bench_add_threads(_ name: UnsafePointer<CChar>, _ run: Run)
@_silgen_name("bench_work")
func bench_work(_ context: UnsafeMutableRawPointer)

final class Target {
  let context = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)

  init() { context.initialize(to: 1) }

  deinit { context.deallocate() }
}

final class Delegation {
  weak var target: Target?
  var action: (Target) -> Void = { bench_work($0.context) }

  init(target: Target) { self.target = target }

  @inline(never)
  func call() {
    guard let target else { fatalError("dead") }
    action(target)
  }
}

nonisolated(unsafe) var target = Target()
nonisolated(unsafe) var delegations = [
  Delegation(target: target), Delegation(target: target),
]

let runOne: Run = { count, _ in
  let delegation = delegations[0]
  for _ in 0..<count { delegation.call() }
}

let runLifetime: Run = { count, _ in
  for _ in 0..<count {
    let target = Target()
    withExtendedLifetime(target) {
      delegations[1] = Delegation(target: target)
    }
  }
}

// The harness keeps the pointer, and a static string lives for ever.
func name(_ text: StaticString) -> UnsafePointer<CChar> {
  UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

@_cdecl("peer_calls")
public func peerCalls() {
  bench_add(name("Swift weak + closure"), runOne)
}

@_cdecl("peer_threads")
public func peerThreads() {
  bench_add_threads(name("Swift weak, one object"), runOne)
}

@_cdecl("peer_lifetimes")
public func peerLifetimes() {
  bench_add(
    name("Swift object + weak + closure, and release"), runLifetime)
}
