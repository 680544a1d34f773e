// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CInterchange
import CallbackRegistry
import Testing

@Suite("Queues between C and Swift")
struct QueueInterchangeTests {
  @Test("Swift posts to a queue of C's, and does not end it")
  func queueOfC() throws {
    let registry = try Registry()
    var handle: UInt64 = 0
    #expect(cbr_queue_create(registry.handle, nil, &handle) == CBR_OK)
    let tracker = Tracker()
    let counter = Counter()
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in
      object.touch()
      counter.increment()
    }.keep()
    do {
      let queue = try #require(CallQueue(handle: handle))
      try queue.post(token, tracker.make())
      try queue.post("closure") { counter.increment() }
      #expect(try queue.statistics.waiting == 2)
    }
    var ran = 0
    #expect(cbr_queue_run(handle, 0, &ran) == CBR_OK)
    #expect(ran == 2)
    #expect(counter.count == 2)
    #expect(tracker.liveCount == 0)
    #expect(cbr_invalidate(handle, 1) == CBR_OK)
    #expect(CallQueue(handle: handle) == nil)
    #expect(CallQueue(handle: token.handle) == nil)
    #expect(CallQueue(handle: 0) == nil)
    #expect(CallQueue(handle: .max) == nil)
  }

  @Test("Swift posts to, and awaits, a function of C's")
  func functionOfC() async throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry)
    let seen = UnsafeMutablePointer<interchange_seen>.allocate(capacity: 1)
    seen.initialize(to: interchange_seen())
    defer { seen.deallocate() }
    var handle: UInt64 = 0
    #expect(
      interchange_register(
        registry.handle, Token<interchange_point, Double>.typeTag, seen,
        &handle) == CBR_OK)
    let token = try #require(
      Token<interchange_point, Double>(handle: handle))
    let point = interchange_point(x: 2.5, weight: 4)
    #expect(try await queue.call(token, point) == 10)
    try queue.post(token, point)
    #expect(queue.finish().isFailed == false)
    _ = token.end(waiting: .seconds(3_600))
    var failing: UInt64 = 0
    #expect(
      interchange_register_answer(
        registry.handle, Token<Void, Void>.typeTag, 5, &failing) == CBR_OK)
    let answer = try #require(Token<Void, Void>(handle: failing))
    let other = try CallQueue("other", in: registry)
    #expect(await name { try await other.call(answer) } == "failed")
    // Another type is refused before anything is taken (G10).
    #expect(Token<Double, Double>(handle: failing) == nil)
  }

  @Test("C posts to Swift's queue a call of Swift's closure, by its tag")
  func closureOfSwift() throws {
    let registry = try Registry()
    let queue = try CallQueue(in: registry, on: .pumped)
    let seen = Locked<[Int32]>([])
    let token = try registry.register("note") { (number: Int32) in
      seen.withLock { $0.append(number) }
    }.keep()
    var number: Int32 = 6
    var message = cbr_message()
    message.size = MemoryLayout<cbr_message>.size
    #expect(cbr_post(queue.handle, token.handle, &message) == CBR_E_INTERFACE)
    message.type_tag = Token<Int32, Void>.typeTag
    message.invoke = { function, context, payload in
      typealias Typed =
        @convention(c) (
          UnsafeMutableRawPointer?, UnsafeRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32
      _ = unsafeBitCast(function, to: Typed.self)(context, payload, nil)
    }
    withUnsafeMutablePointer(to: &number) { number in
      message.payload = UnsafeMutableRawPointer(number)
      #expect(cbr_post(queue.handle, token.handle, &message) == CBR_OK)
      #expect(throws: Never.self) { try queue.run() }
    }
    #expect(seen.withLock { $0 } == [6])
  }
}

extension Outcome {
  fileprivate var isFailed: Bool {
    if case .failed = self { return true }
    return false
  }
}
