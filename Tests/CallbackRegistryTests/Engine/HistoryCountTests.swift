// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CallbackRegistry

@Suite struct HistoryCountTests {
  @Test("The count of a settled token is final, also when it is less (A1)")
  func settledIsFinal() throws {
    for isFlushed in [true, false] {
      let history = try TestHistory(path: nil)
      let producer = TestProducer(history, number: 1)
      producer.register(testToken(1))
      // An attempt that is under way, and then turns out to be none.
      producer.count(testToken(1), attempts: 5, unfinished: 1)
      if isFlushed { history.flush() }
      producer.end(testToken(1))
      producer.settle(testToken(1), attempts: 4)
      if isFlushed { history.flush() }
      // Taken before the end, and late.
      producer.count(testToken(1), attempts: 5, unfinished: 1)
      history.flush()
      let counts = try history.rows(
        "SELECT attempts, outstanding FROM token")
      #expect(counts == ["4|0"])
      #expect(history.release() == .ok)
    }
  }
}
