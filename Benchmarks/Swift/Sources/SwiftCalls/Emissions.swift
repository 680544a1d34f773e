// SPDX-License-Identifier: Apache-2.0
//
// One event for 1 and for 10 handlers: Foundation's NotificationCenter.

import Foundation

private let target = Target()
private let center = NotificationCenter()
private let one = Notification.Name("one")
private let ten = Notification.Name("ten")

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

func measureEmissions() {
  observe(one, times: 1)
  observe(ten, times: 10)
  benchGroup(name("swift emissions"))
  // Ours come here, in front: "Signal, emit to 1", "Signal, emit to 10", and
  // `for await`. The report looks for the first of them.
  benchAdd(name("NotificationCenter, post to 1")) { count, _ in
    post(one, count)
  }
  benchAdd(name("NotificationCenter, post to 10")) { count, _ in
    post(ten, count)
  }
  benchMeasure()
}
