// SPDX-License-Identifier: Apache-2.0
//
// A call by a token, to a closure and to an object, beside what Swift programs
// have otherwise: a bare closure, a weak reference with a closure, closures in
// a dictionary with a lock. Each gets a number and ends in bench_work.

import CallbackRegistry
import Synchronization

// The harness runs everything on one thread.
private let target = Target()
nonisolated(unsafe) private var tokens: [Token<UInt64, Void>] = []

private func callToken(_ index: Int, _ count: UInt64) {
  let token = tokens[index]
  for number in 0..<count {
    do {
      try token.call(number)
    } catch {
      fatalError("\(error)")
    }
  }
}

private func addTokens() throws(RegistryError) {
  for level in [Registry.Level.off, .lifecycle, .calls] {
    // Never released, like all that the harness measures.
    let registry = Unmanaged.passRetained(try Registry(level: level))
      .takeUnretainedValue()
    tokens.append(
      try registry.register("closure") { [target] (_: UInt64) in
        target.work()
      }.keep())
    tokens.append(
      try registry.register("object", owner: target) {
        (target, _: UInt64) in target.work()
      }.keep())
  }
}

private final class Delegation {
  weak var target: Target?
  let action: (Target, UInt64) -> Void = { target, _ in target.work() }

  init(target: Target) { self.target = target }

  @inline(never)
  func call(_ number: UInt64) {
    guard let target else { fatalError("dead") }
    action(target, number)
  }
}

private final class Closure {
  let action: (UInt64) -> Void = { [target] _ in target.work() }

  @inline(never)
  func call(_ number: UInt64) { action(number) }
}

private final class Closures: Sendable {
  let all = Mutex<[UInt64: @Sendable (UInt64) -> Void]>([:])

  init(count: UInt64) {
    all.withLock { all in
      for key in 0..<count { all[key] = { [target] _ in target.work() } }
    }
  }

  /// Calls it when the lock is free again, so that it may change them.
  @inline(never)
  func call(_ key: UInt64, _ number: UInt64) {
    guard let action = all.withLock({ $0[key] }) else { fatalError("dead") }
    action(number)
  }
}

nonisolated(unsafe) private let delegation = Delegation(target: target)
nonisolated(unsafe) private let closure = Closure()
private let closures = Closures(count: 100)

func measureCalls() throws(RegistryError) {
  try addTokens()
  benchGroup(name("swift calls"))
  // The second case is what the others are compared with.
  benchAdd(name("token.call, history off")) { count, _ in callToken(0, count) }
  benchAdd(name("... of an object, history off")) { count, _ in
    callToken(1, count)
  }
  benchAdd(name("token.call, level lifecycle")) { count, _ in
    callToken(2, count)
  }
  benchAdd(name("... of an object, level lifecycle")) { count, _ in
    callToken(3, count)
  }
  benchAdd(name("token.call, level calls")) { count, _ in callToken(4, count) }
  benchAdd(name("... of an object, level calls")) { count, _ in
    callToken(5, count)
  }
  benchAdd(name("a closure")) { count, _ in
    let closure = closure
    for number in 0..<count { closure.call(number) }
  }
  benchAdd(name("a weak reference + closure")) { count, _ in
    let delegation = delegation
    for number in 0..<count { delegation.call(number) }
  }
  benchAdd(name("a lock + dictionary of 100 closures")) { count, _ in
    let closures = closures
    for number in 0..<count { closures.call(7, number) }
  }
  benchMeasure()
}
