// SPDX-License-Identifier: Apache-2.0
//
// What lies between a signal and a loop over its values. Under the lock it only
// changes what it holds, and says what is to be done: values are released and
// loops are resumed when the lock is free (G13).

#if !hasFeature(Embedded)
  // Unchecked: every `var` is used under the lock alone.
  final class SignalBuffer<Value: Sendable>: @unchecked Sendable {
    typealias Waiter = CheckedContinuation<Value?, Never>

    private let lock: Monitor
    private let policy: BufferingPolicy
    /// Those before `first` have been taken.
    private var values: [Value?] = []
    private var first = 0
    private var waiters: [Waiter] = []
    private var dropped = 0
    private var isFinished = false

    /// Nil without memory.
    init?(_ policy: BufferingPolicy) {
      guard let lock = Monitor.make() else { return nil }
      self.lock = lock
      self.policy = policy
    }

    deinit { lock.destroy() }

    var droppedCount: Int { lock.locked { dropped } }

    /// Gives a value to who waits for one, keeps it, or drops one.
    func put(_ value: Value) {
      var waiter: Waiter?
      var unwanted: Value?
      lock.locked {
        if isFinished {
          unwanted = drop(value)
        } else if !waiters.isEmpty {
          waiter = waiters.removeFirst()
        } else {
          unwanted = keep(value)
        }
      }
      waiter?.resume(returning: value)
      withExtendedLifetime(unwanted) {}
    }

    /// Answers with the next value, now or when there is one; nil at the end.
    func take(_ waiter: Waiter) {
      var value: Value?
      let mustWait = lock.locked {
        value = takeFirst()
        guard value == nil, !isFinished else { return false }
        waiters.append(waiter)
        return true
      }
      if !mustWait { waiter.resume(returning: value) }
    }

    /// Nothing more will come: what is kept is the rest.
    func finish() {
      for waiter in end().waiters { waiter.resume(returning: nil) }
    }

    /// Nobody wants anything more: what is kept is dropped.
    func cancel() {
      let (waiters, unwanted) = end(dropping: true)
      for waiter in waiters { waiter.resume(returning: nil) }
      withExtendedLifetime(unwanted) {}
    }

    private func end(
      dropping: Bool = false
    ) -> (waiters: [Waiter], unwanted: [Value?]) {
      lock.locked {
        isFinished = true
        defer { waiters = [] }
        guard dropping else { return (waiters, []) }
        dropped += values.count - first
        defer { values = [] }
        first = 0
        return (waiters, values)
      }
    }

    // ----------------------------------------------- With the lock held --

    private func drop(_ value: Value?) -> Value? {
      dropped += 1
      return value
    }

    /// Returns the value that is not kept.
    private func keep(_ value: Value) -> Value? {
      let (limit, keepsNewest) = policy.parts
      var unwanted: Value?
      if values.count - first >= limit {
        guard keepsNewest, limit > 0 else { return drop(value) }
        unwanted = drop(takeFirst())
      }
      values.append(value)
      return unwanted
    }

    private func takeFirst() -> Value? {
      guard first < values.count else { return nil }
      defer {
        first += 1
        if first * 2 > values.count {
          values.removeFirst(first)
          first = 0
        }
      }
      return values[first].take()
    }
  }

  extension BufferingPolicy {
    fileprivate var parts: (limit: Int, keepsNewest: Bool) {
      switch self {
      case .bufferingOldest(let limit): (limit, false)
      case .bufferingNewest(let limit): (limit, true)
      }
    }
  }
#endif
