// SPDX-License-Identifier: Apache-2.0
//
// What one thread gives and one task awaits.
//
// Shared variables
//   value   written by who gives, before it changes `state`; read by the task
//           when that says so
//   waiter  written by the task, before it changes `state`; read by who gives
//           when that says so
//   state   changed once by each (acquiring and releasing): who comes second
//           sees what the other has written, and goes on with both.

#if !hasFeature(Embedded)
  import Synchronization

  private enum AnswerState: UInt8, AtomicRepresentable {
    case open
    case awaited
    case given
  }

  // Unchecked: `value` and `waiter` are handed over by `state`, as above.
  final class Answer<Value: Sendable>: @unchecked Sendable {
    private let state = Atomic<AnswerState>(.open)
    private var value: Value?
    private var waiter: CheckedContinuation<Value, Never>?

    init() {}

    /// Gives the value, which has not been given before.
    func give(_ value: Value) {
      self.value = value
      let former = state.exchange(.given, ordering: .acquiringAndReleasing)
      guard former == .awaited else { return }
      waiter?.resume(returning: value)
    }

    /// The value, when it has been given; awaited once.
    nonisolated(nonsending) func taken() async -> Value {
      await withCheckedContinuation { continuation in
        waiter = continuation
        let (isFirst, _) = state.compareExchange(
          expected: .open, desired: .awaited,
          ordering: .acquiringAndReleasing)
        if !isFirst, let value { continuation.resume(returning: value) }
      }
    }
  }
#endif
