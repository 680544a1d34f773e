// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Dispatch
import Foundation
import Synchronization
import Testing

@Suite("Where queues deliver")
struct QueuePlaceTests {
  static let long = Duration.seconds(3_600)
  static let place = DispatchSpecificKey<String>()

  /// An executor that runs jobs on a Dispatch queue of its own.
  final class OwnExecutor: SerialExecutor, TaskExecutor {
    let queue: DispatchQueue
    let jobs = Counter()

    init(_ name: String) {
      queue = DispatchQueue(label: name)
      queue.setSpecific(key: QueuePlaceTests.place, value: name)
    }

    func enqueue(_ job: consuming ExecutorJob) {
      jobs.increment()
      let job = UnownedJob(job)
      queue.async {
        job.runSynchronously(
          isolatedTo: self.asUnownedSerialExecutor(),
          taskExecutor: self.asUnownedTaskExecutor())
      }
    }
  }

  private func expectDelivery(
    on place: CallQueue.Place, named name: String
  ) async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let queue = try CallQueue(name, in: registry, on: place)
    let seen = Locked<[Int]>([])
    let elsewhere = Counter()
    let last = Gate()
    let token = try registry.register("note") {
      (number: Int, object: Tracker.Tracked) in
      object.touch()
      if DispatchQueue.getSpecific(key: Self.place) != name {
        elsewhere.increment()
      }
      seen.withLock { $0.append(number) }
      if number == 199 { last.open() }
    }.keep()
    for number in 0..<200 { try queue.post(token, number, tracker.make()) }
    await last.opened()
    #expect(seen.withLock { $0 } == Array(0..<200))
    #expect(elsewhere.count == 0)
    #expect(queue.end(waiting: Self.long).isEnded)
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount == 200)
    #expect(errorName { try queue.post(token, 1, tracker.make()) } == "stale")
    #expect(tracker.liveCount == 0)
  }

  @Test(
    "On a Dispatch queue, one call at a time (G21)", arguments: [true, false])
  func dispatch(_ isSerial: Bool) async throws {
    let queue = DispatchQueue(
      label: "dispatch", attributes: isSerial ? [] : .concurrent)
    queue.setSpecific(key: Self.place, value: "dispatch")
    try await expectDelivery(on: .dispatch(queue), named: "dispatch")
  }

  @Test("On a serial executor")
  func serialExecutor() async throws {
    let executor = OwnExecutor("serial")
    try await expectDelivery(on: .executor(executor), named: "serial")
    #expect(executor.jobs.count > 0)
  }

  @Test("On a task executor")
  func taskExecutor() async throws {
    let executor = OwnExecutor("tasks")
    try await expectDelivery(on: .taskExecutor(executor), named: "tasks")
    #expect(executor.jobs.count > 0)
  }

  @Test("On the main actor, whose closures are refused elsewhere")
  func main() async throws {
    let registry = try Registry()
    let queue = try CallQueue("ui", in: registry, on: .main)
    let lines = Lines()
    let show = try registry.registerOnMain("show") {
      (line: String, times: Int) in
      lines.add(line, times)
      return lines.all.count
    }.keep()
    let none = try registry.registerOnMain("none") { lines.all.count }.keep()
    #expect(try await queue.call(show, "one", 2) == 2)
    #expect(try await queue.call(none) == 2)
    #expect(await MainActor.run { try? show.call("two", 1) } == 3)
    let name = Later<String>()
    Worker { name.value = errorName { _ = try show.call("three", 1) } }.join()
    #expect(name.value == "wrongThread")
    #expect(show.isLive)
    #expect(try registry.statistics.refused == 1)
    let other = try CallQueue("other", in: registry)
    let refused = await CallbackRegistryTests.name {
      _ = try await other.call(show, "four", 1)
    }
    #expect(refused == "wrongThread")
    #expect(await lines.all == ["one", "one", "two"])
  }

  @MainActor final class Lines {
    nonisolated init() {}

    private(set) var all: [String] = []

    func add(_ line: String, _ times: Int) {
      all += Array(repeating: line, count: times)
    }
  }

  @Test("What is posted while it delivers, and by C, is delivered, too")
  func later() throws {
    let registry = try Registry()
    let queue = try CallQueue(
      in: registry, on: .dispatch(DispatchQueue(label: "later")))
    let last = Gate()
    let counter = Counter()
    let itself = Later<Token<Void, Void>>()
    let token = try registry.register("again") {
      counter.increment()
      guard counter.count < 50, let token = itself.value else {
        return last.open()
      }
      #expect(throws: Never.self) { try queue.post(token) }
    }.keep()
    itself.value = token
    try queue.post(token)
    last.wait()
    #expect(counter.count == 50)
    let fromC = Gate()
    let plain: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      Unmanaged<Gate>.fromOpaque($0!).takeUnretainedValue().open()
    }
    var what = cbr_registration()
    what.size = MemoryLayout<cbr_registration>.size
    what.function = unsafeBitCast(plain, to: cbr_function.self)
    what.context = Unmanaged.passUnretained(fromC).toOpaque()
    var handle: UInt64 = 0
    #expect(cbr_register(registry.handle, &what, &handle) == CBR_OK)
    #expect(cbr_post(queue.handle, handle, nil) == CBR_OK)
    fromC.wait()
    #expect(queue.end(waiting: Self.long).isEnded)
  }

  @Test("Timeouts of completions are told there, and session events")
  func timeouts() throws {
    let registry = try Registry()
    let place = DispatchQueue(label: "clock")
    place.setSpecific(key: Self.place, value: "clock")
    let queue = try CallQueue(in: registry, on: .dispatch(place))
    let over = Gate()
    let told = Later<String>()
    let completion = try Completion<Int>("slow", in: registry) { result in
      if case .failure(let error) = result { told.value = error.name }
      #expect(DispatchQueue.getSpecific(key: Self.place) == "clock")
      over.open()
    }
    try completion.setTimeout(.milliseconds(1), on: queue)
    over.wait()
    #expect(told.value == "timedOut")
    let tracker = Tracker()
    let listener = SessionTests.Listener(tracker)
    let session = try Session(in: registry, delegate: listener, queue: queue)
    try session.begin().finish()
    session.finish()
    listener.isInvalid.wait()
    #expect(listener.told == ["finished []", "invalid: ended"])
  }

  @Test("A queue that is released, or ended, at any moment frees all (A12)")
  func released() throws {
    let registry = try Registry(level: .lifecycle)
    let tracker = Tracker()
    let place = DispatchQueue(label: "place", attributes: .concurrent)
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in object.touch()
    }.keep()
    for round in 0..<100 {
      let owner = try Owner(in: registry)
      let queue = try CallQueue(in: owner, on: .dispatch(place))
      let workers = (0..<2).map { _ in
        Worker { for _ in 0..<20 { try? queue.post(token, tracker.make()) } }
      }
      switch round % 4 {
      case 0: _ = queue.end()
      case 1: _ = owner.end()
      case 2: queue.finish()
      default: break
      }
      for worker in workers { worker.join() }
      _ = queue.end(waiting: Self.long)
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("A finished queue ends by itself, and is dead then")
  func finishing() throws {
    let registry = try Registry()
    let place = DispatchQueue(label: "place")
    let handle: UInt64
    place.suspend()
    do {
      let queue = try CallQueue(in: registry, on: .dispatch(place))
      handle = queue.handle
      try queue.post("job") {}
      #expect(queue.finish().isPending)
    }
    #expect(CallQueue(handle: handle) != nil)
    place.resume()
    // Jobs of the queue come before this one, which is posted when they are.
    while CallQueue(handle: handle) != nil { sched_yield() }
    #expect(try registry.leaks().isEmpty)
  }
}
