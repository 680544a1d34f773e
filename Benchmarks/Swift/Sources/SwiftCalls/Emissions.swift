// SPDX-License-Identifier: Apache-2.0
//
// One event for 1 and for 10 handlers: a Signal, and Foundation's
// NotificationCenter.

import CallbackRegistry
import Foundation

private let target = Target()
private let center = NotificationCenter()
private let one = Notification.Name("one")
private let ten = Notification.Name("ten")

// The harness runs everything on one thread.
nonisolated(unsafe) private var signals: [Signal<UInt64>] = []
nonisolated(unsafe) private var values: SignalValues<UInt64>?

private func observe(_ event: Notification.Name, times count: Int) {
  for _ in 0..<count {
    _ = center.addObserver(forName: event, object: nil, queue: nil) {
      [target] _ in target.work()
    }
  }
}

private func post(_ event: Notification.Name, _ count: UInt64) {
  for _ in 0..<count { center.post(name: event, object: nil) }
}

private func addSignals() throws(RegistryError) {
  let registry = try Registry(level: .off)
  for count in [1, 10, 0] {
    let signal = try Signal<UInt64>("signal", in: registry)
    for _ in 0..<count {
      _ = try signal.connect("handler") { [target] _ in target.work() }.keep()
    }
    signals.append(signal)
  }
  values = try signals[2].values()
}

private func emit(_ index: Int, _ count: UInt64) {
  let signal = signals[index]
  for number in 0..<count {
    do {
      try signal.emit(number)
    } catch {
      fatalError("\(error)")
    }
  }
}

func measureEmissions() throws(RegistryError) {
  observe(one, times: 1)
  observe(ten, times: 10)
  try addSignals()
  benchGroup(name("swift emissions"))
  benchAdd(name("Signal, emit to 1")) { count, _ in emit(0, count) }
  benchAdd(name("Signal, emit to 10")) { count, _ in emit(1, count) }
  // Nobody takes them: each pushes the oldest out.
  benchAdd(name("Signal, emit to values()")) { count, _ in emit(2, count) }
  benchAdd(name("NotificationCenter, post to 1")) { count, _ in
    post(one, count)
  }
  benchAdd(name("NotificationCenter, post to 10")) { count, _ in
    post(ten, count)
  }
  benchMeasure()
}
