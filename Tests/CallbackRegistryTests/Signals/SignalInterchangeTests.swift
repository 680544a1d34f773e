// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import Testing

@testable import CallbackRegistry

private let forever = Duration.seconds(3_600)

@Suite("Signals between C and Swift")
struct SignalInterchangeTests {
  @Test("C connects a handler to a signal of Swift's, and emits it")
  func signalOfSwift() throws {
    let registry = try Registry()
    let heard = Heard()
    let signal = try Signal<Int32>("number", in: registry)
    let mine = try signal.connect("swift") { heard.add("swift\($0)") }
    let seen = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    seen.initialize(to: 0)
    defer { seen.deallocate() }
    let token = try connect(to: signal.handle, context: seen) {
      context, argument in
      context!.assumingMemoryBound(to: Int32.self).pointee +=
        argument!.assumingMemoryBound(to: Int32.self).pointee
      return cbr_disposition(CBR_CONTINUE)
    }
    #expect(try signal.emit(5).called == 2)
    #expect(seen.pointee == 5)
    var number: Int32 = 6
    var result = cbr_emission()
    result.size = MemoryLayout<cbr_emission>.size
    #expect(cbr_emit(signal.handle, &number, &result) == CBR_OK)
    #expect(result.called == 2)
    #expect(seen.pointee == 11)
    #expect(heard.take() == ["swift5", "swift6"])
    // A missing argument is no trap.
    #expect(cbr_invalidate_wait(token, 1_000, .max) == CBR_OK)
    #expect(cbr_emit(signal.handle, nil, &result) == CBR_OK)
    #expect(result.called == 0)
    #expect(heard.take().isEmpty)
    #expect(cbr_invalidate(signal.handle, 1_000) == CBR_OK)
    #expect(!mine.token.isLive)
  }

  @Test("Swift connects a handler to a signal of C's, and emits it")
  func signalOfC() throws {
    let registry = try Registry()
    let tracker = Tracker()
    var handle: UInt64 = 0
    #expect(
      cbr_signal_create(registry.handle, "c", 0, &handle) == CBR_OK)
    let heard = Heard()
    do {
      let signal = try #require(Signal<Int32>(untypedHandle: handle))
      _ = try signal.connect("swift") {
        [object = tracker.make()] number in
        object.touch()
        heard.add("\(number)")
      }.keep()
      #expect(try signal.emit(1).called == 1)
    }
    var number: Int32 = 2
    #expect(cbr_emit(handle, &number, nil) == CBR_OK)
    #expect(heard.take() == ["1", "2"])
    #expect(cbr_invalidate_wait(handle, 1_000, .max) == CBR_OK)
    #expect(tracker.liveCount == 0)
    #expect(Signal<Int32>(untypedHandle: handle) == nil)
  }

  @Test("A signal is taken up for the type that it was made for (G10)")
  func types() throws {
    let registry = try Registry()
    let signal = try Signal<Int32>("number", in: registry)
    #expect(Signal<Int32>(handle: signal.handle) != nil)
    #expect(Signal<UInt32>(handle: signal.handle) == nil)
    #expect(Signal<Int32>(untypedHandle: signal.handle) == nil)
    var handle: UInt64 = 0
    #expect(
      cbr_signal_create(registry.handle, "c", 0, &handle) == CBR_OK)
    #expect(Signal<Int32>(handle: handle) == nil)
    for wrong in [0, .max, registry.handle, signal.handle &+ (1 << 40)] {
      #expect(Signal<Int32>(handle: wrong) == nil)
      #expect(Signal<Int32>(untypedHandle: wrong) == nil)
    }
  }

  @Test("On a queue each message has a copy of the input, freed once (G21)")
  func queued() throws {
    let registry = try Registry()
    let queue = try pumpedQueue(in: registry, maxItems: 3)
    let tracker = Tracker()
    let heard = Heard()
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    let traits = CallbackTraits("queued", [], nil, #fileID, #line)
    let token = try signal.add(traits, nil, 0, onQueue: queue) { object in
      object.touch()
      heard.add("called")
      return 0
    }.keep()
    for _ in 0..<2 {
      #expect(try signal.emit(tracker.make()).queued == 1)
    }
    #expect(tracker.liveCount == 2)
    var ran = 0
    #expect(cbr_queue_run(queue, 1, &ran) == CBR_OK)
    #expect(heard.take() == ["called"])
    #expect(tracker.liveCount == 1)
    // What does not fit is refused, and its copy freed.
    for _ in 0..<2 { try signal.emit(tracker.make()) }
    #expect(try signal.emit(tracker.make()).refused == 1)
    #expect(tracker.liveCount == 3)
    // What is left when the handler dies is not called.
    #expect(token.end(waiting: forever).isEnded)
    #expect(cbr_queue_run(queue, 0, &ran) == CBR_OK)
    #expect(heard.take().isEmpty)
    #expect(tracker.liveCount == 0)
  }

  @Test("A queue that ends frees the inputs that wait in it (G22)")
  func queueEnds() throws {
    let registry = try Registry()
    let queue = try pumpedQueue(in: registry, maxItems: 8)
    let tracker = Tracker()
    let signal = try Signal<(Tracker.Tracked, Int)>("pair", in: registry)
    let traits = CallbackTraits("queued", [], nil, #fileID, #line)
    let listener = tracker.make()
    let token = try signal.add(traits, to: listener, 0, onQueue: queue) {
      object, pair in
      pair.0.touch()
      return 0
    }.keep()
    for number in 0..<5 { try signal.emit(tracker.make(), number) }
    #expect(tracker.liveCount == 6)
    #expect(cbr_invalidate_wait(queue, 1, .max) == CBR_OK)
    #expect(tracker.liveCount == 1)
    #expect(try signal.emit(tracker.make(), 6).refused == 1)
    #expect(tracker.liveCount == 1)
    withExtendedLifetime(listener) {}
    #expect(token.end().isEnded)
  }

  @Test("A handler of an object that has died is not called on its queue")
  func queuedObject() throws {
    let registry = try Registry()
    let queue = try pumpedQueue(in: registry, maxItems: 8)
    let tracker = Tracker()
    let signal = try Signal<Int>("number", in: registry)
    let traits = CallbackTraits("queued", [], nil, #fileID, #line)
    let heard = Heard()
    let token: Token<Int, Void>
    do {
      let object = tracker.make()
      token = try signal.add(traits, to: object, 0, onQueue: queue) {
        object, number in
        heard.add("\(number)")
        return 0
      }.keep()
      try signal.emit(1)
      var ran = 0
      #expect(cbr_queue_run(queue, 0, &ran) == CBR_OK)
      try signal.emit(2)
      withExtendedLifetime(object) {}
    }
    var ran = 0
    #expect(cbr_queue_run(queue, 0, &ran) == CBR_OK)
    #expect(heard.take() == ["1"])
    #expect(!token.isLive)
    #expect(tracker.liveCount == 0)
  }

  private func pumpedQueue(
    in registry: Registry, maxItems: UInt64
  ) throws -> UInt64 {
    var options = QueueOptions()
    options.maxItems = maxItems
    var queue: UInt64 = 0
    try #require(
      Queues.create(options, in: registry.handle, out: &queue) == .ok)
    return queue
  }

  private func connect(
    to signal: UInt64, context: UnsafeMutableRawPointer,
    _ handler:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
      ) -> cbr_disposition
  ) throws -> UInt64 {
    var what = cbr_registration()
    what.size = MemoryLayout<cbr_registration>.size
    what.function = unsafeBitCast(handler, to: cbr_function.self)
    what.context = context
    var token: UInt64 = 0
    try #require(cbr_connect(signal, &what, nil, &token) == CBR_OK)
    return token
  }
}
