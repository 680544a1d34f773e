// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

@Suite("Sessions")
struct SessionTests {
  static let long = Duration.seconds(3_600)

  struct Mishap: Error, Equatable { let number: Int }

  /// Notes what it is told, and does what a test asks for.
  final class Listener: SessionDelegate {
    private let notes = Locked<[String]>([])
    private let tracked: Tracker.Tracked
    let reply = Later<Reply>()
    let whenReceiving = Later<@Sendable (SessionTask) -> Void>()
    let whenComplete = Later<@Sendable (SessionTask) -> Void>()
    let answersAtOnce: Bool
    let isInvalid = Gate()

    init(_ tracker: Tracker, answersAtOnce: Bool = true) {
      tracked = tracker.make()
      self.answersAtOnce = answersAtOnce
    }

    var told: [String] { notes.withLock { $0 } }

    func note(_ text: String) { notes.withLock { $0.append(text) } }

    func task(
      _ task: SessionTask, didReceiveResponse response: [UInt8], reply: Reply
    ) {
      note("response \(response)")
      if answersAtOnce {
        #expect(throws: Never.self) { try reply.allow() }
      } else {
        self.reply.value = reply
      }
    }

    func task(_ task: SessionTask, didReceiveData data: [UInt8]) {
      note("data \(data)")
      whenReceiving.value?(task)
    }

    func task(_ task: SessionTask, didProgress progress: SessionTask.Progress) {
      note("progress \(progress.receivedBytes)")
    }

    func task(_ task: SessionTask, didComplete end: SessionTask.End) {
      switch end {
      case .finished: note("finished \(task.gathered)")
      case .failed(let error as Mishap): note("mishap \(error.number)")
      case .failed(let error as RegistryError): note("failed \(error.name)")
      case .failed(let error): note("failed \(error)")
      case .cancelled: note("cancelled")
      case .timedOut: note("timed out")
      case .delegateGone: note("gone")
      }
      whenComplete.value?(task)
    }

    func session(_ session: Session, didBecomeInvalid reason: EndReason) {
      note("invalid: \(reason)")
      isInvalid.open()
    }
  }

  /// A delegate that has no methods.
  final class Idle: SessionDelegate {
    let tracked: Tracker.Tracked
    init(_ tracker: Tracker) { tracked = tracker.make() }
  }

  @Test("A task's events come in order, and the session's end last (G24)")
  func order() throws {
    let registry = try Registry()
    let tracker = Tracker()
    var listener: Listener? = Listener(tracker)
    let told = try #require(listener)
    let session = try Session("downloads", in: registry, delegate: told)
    let task = try session.begin("index", expecting: 3, gathers: true)
    try task.respond([1])
    try task.send([2, 3])
    try task.send([4])
    #expect(session.finish().isEnded)
    #expect(task.finish().isEnded)
    #expect(
      told.told == [
        "response [1]", "data [2, 3]", "progress 2", "data [4]", "progress 3",
        "finished [2, 3, 4]", "invalid: ended",
      ])
    #expect(!session.isLive)
    #expect(!task.isLive)
    #expect(task.finish().isAlready)
    #expect(session.cancel().isAlready)
    #expect(errorName { _ = try session.begin() } == "closed")
    #expect(try registry.leaks().isEmpty)
    listener = nil
    #expect(tracker.liveCount == 1)
    withExtendedLifetime(told) {}
  }

  /// What ends a session.
  enum End: CaseIterable {
    case finished, cancelled, released, ended, owner, inC, closed, delegateInC
  }

  @Test(
    "The delegate is held until it was told of the end, and told once (G23)",
    arguments: End.allCases)
  func held(_ end: End) throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let tracker = Tracker()
    let ends = Counter()
    final class Last: SessionDelegate {
      let tracked: Tracker.Tracked
      let ends: Counter
      init(_ tracker: Tracker, _ ends: Counter) {
        tracked = tracker.make()
        self.ends = ends
      }
      func session(_ session: Session, didBecomeInvalid reason: EndReason) {
        ends.increment()
      }
    }
    var session: Session? = try Session(
      "held", in: owner, delegate: Last(tracker, ends))
    let task = try session?.begin()
    try task?.send([1])
    #expect(tracker.liveCount == 1)
    switch end {
    case .finished:
      session?.finish()
      #expect(tracker.liveCount == 1)
      task?.finish()
    case .cancelled: session?.cancel()
    case .released: session = nil
    case .ended: #expect(session?.end(waiting: Self.long).isEnded == true)
    case .owner: _ = owner.end()
    case .inC:
      #expect(cbr_session_cancel(try #require(session).handle) == CBR_OK)
    case .closed: _ = registry.close(waiting: Self.long)
    case .delegateInC:
      let delegate = try registry.live().first { $0.kind == .token }
      #expect(cbr_invalidate(try #require(delegate).handle, 1) == CBR_OK)
    }
    // A delegate that was ended from outside can be told of nothing.
    #expect(ends.count == (end == .closed || end == .delegateInC ? 0 : 1))
    #expect(tracker.liveCount == 0)
    #expect(task?.isLive == false)
    _ = session?.cancel()
    #expect(ends.count == (end == .closed || end == .delegateInC ? 0 : 1))
  }

  @Test("A session that could not be made holds nothing (G6)")
  func failedCreation() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    _ = owner.end()
    let tracker = Tracker()
    #expect(
      errorName {
        _ = try Session(in: owner, delegate: Idle(tracker))
      } == "stale")
    #expect(tracker.madeCount == 1)
    #expect(tracker.liveCount == 0)
    #expect(try registry.live().isEmpty)
  }

  @Test("A delegate without methods lets everything pass")
  func idle() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let session = try Session(in: registry, delegate: Idle(tracker))
    let task = try session.begin(gathers: true)
    try task.respond([9])
    try task.send([1])
    #expect(task.gathered == [1])
    #expect(task.finish().isEnded)
    #expect(session.finish().isEnded)
    #expect(tracker.liveCount == 0)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("Data waits for the reply, within a limit (G26)")
  func reply() throws {
    let registry = try Registry()
    let listener = Listener(Tracker(), answersAtOnce: false)
    let session = try Session(in: registry, delegate: listener)
    let task = try session.begin(waitingLimit: 2)
    try task.respond()
    try task.send([1, 2])
    #expect(errorName { try task.send([3]) } == "full")
    #expect(listener.told == ["response []"])
    let reply = try #require(listener.reply.value)
    try reply.allow()
    #expect(listener.told.dropFirst() == ["data [1, 2]", "progress 2"])
    let error = try #require(thrown { try reply.cancel() })
    #expect(error.name == "consumed")
    #expect(error.explanation.sentence.contains("on thread"))
    task.finish()
    session.finish()
    #expect(listener.told.suffix(2) == ["finished []", "invalid: ended"])
  }

  @Test("A reply that cancels, and one that is dropped, end the task (G27)")
  func cancellingReplies() throws {
    let registry = try Registry()
    let listener = Listener(Tracker(), answersAtOnce: false)
    let session = try Session(in: registry, delegate: listener)
    let first = try session.begin()
    try first.respond()
    try first.send([1])
    try listener.reply.value?.cancel()
    #expect(listener.told == ["response []", "cancelled"])
    let second = try session.begin()
    try second.respond()
    listener.reply.value = nil
    #expect(listener.told.suffix(2) == ["response []", "cancelled"])
    #expect(!second.isLive)
    session.cancel()
    #expect(listener.told.last == "invalid: cancelled")
  }

  @Test("An error of the program's arrives as it was; C's as a number")
  func failing() throws {
    let registry = try Registry()
    let listener = Listener(Tracker())
    let session = try Session(in: registry, delegate: listener)
    let task = try session.begin()
    #expect(task.fail(Mishap(number: 3)).isEnded)
    #expect(task.fail(Mishap(number: 4)).isAlready)
    let other = try session.begin()
    #expect(cbr_task_complete(other.handle, 5) == CBR_OK)
    #expect(listener.told == ["mishap 3", "failed failed"])
  }

  @Test("A task that is cancelled inside its data has no more of it (G28)")
  func cancelledInside() throws {
    let registry = try Registry()
    let tracker = Tracker()
    do {
      let listener = Listener(tracker)
      let session = try Session(in: registry, delegate: listener)
      listener.whenReceiving.value = { task in
        #expect(task.cancel().isEnded)
        #expect(task.cancel().isAlready)
      }
      let ended = Later<SessionTask>()
      listener.whenComplete.value = { ended.value = $0 }
      let task = try session.begin()
      try task.send([1])
      #expect(errorName { try task.send([2]) } == "stale")
      #expect(listener.told == ["data [1]", "progress 1", "cancelled"])
      #expect(ended.value == task)
      #expect(ended.value === task)
      // Ending the session inside of an event is told after it.
      listener.whenComplete.value = { [weak session] _ in session?.cancel() }
      try session.begin().finish()
      #expect(listener.told.suffix(2) == ["finished []", "invalid: cancelled"])
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("With a queue the delegate is told there, also of the last events")
  func onQueue() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let listener = Listener(tracker)
    do {
      let session = try Session(
        in: registry, delegate: listener,
        queue: try CallQueue("events", in: registry))
      let task = try session.begin()
      try task.respond([1])
      try task.send([2])
      task.finish()
      session.finish()
    }
    // Neither the session nor the queue is held by anybody else.
    listener.isInvalid.wait()
    #expect(
      listener.told == [
        "response [1]", "data [2]", "progress 1", "finished []",
        "invalid: ended",
      ])
  }

  @Test("A delegate with a queue is told nowhere else")
  func nowhereElse() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let listener = Listener(tracker)
    let queue = try CallQueue("events", in: registry, on: .pumped)
    let session = try Session(in: registry, delegate: listener, queue: queue)
    let task = try session.begin()
    try task.send([1])
    task.finish()
    session.finish()
    #expect(listener.told.isEmpty)
    try queue.run()
    #expect(
      listener.told == [
        "data [1]", "progress 1", "finished []", "invalid: ended",
      ])
  }

  @Test("When its queue ends nobody is told, and the delegate is released")
  func queueEnds() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let queue = try CallQueue("events", in: registry, on: .pumped)
    let session = try Session(
      in: registry, delegate: Idle(tracker), queue: queue)
    let task = try session.begin()
    try task.send([1])
    #expect(tracker.liveCount == 1)
    #expect(queue.end(waiting: Self.long).isEnded)
    task.finish()
    session.finish()
    #expect(tracker.liveCount == 0)
    #expect(!session.isLive)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("Timeouts of tasks and replies are told on the queue")
  func timeouts() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let queue = try CallQueue("clock", in: registry)
    let listener = Listener(tracker, answersAtOnce: false)
    let session = try Session(in: registry, delegate: listener, queue: queue)
    let done = Gate()
    listener.whenComplete.value = { _ in done.open() }
    let slow = try session.begin(timeout: .zero)
    done.wait()
    #expect(listener.told == ["timed out"])
    #expect(errorName { try slow.send([1]) } != nil)
    let flows = Gate()
    listener.whenReceiving.value = { _ in flows.open() }
    let unanswered = try session.begin(replyTimeout: .zero, unanswered: .allow)
    try unanswered.respond([1])
    try unanswered.send([2])
    flows.wait()
    #expect(listener.told.suffix(2).contains("data [2]"))
    #expect(
      errorName { try listener.reply.value?.allow() } == "stale")
    session.cancel()
    listener.isInvalid.wait()
    let other = try Session(in: registry, delegate: listener)
    #expect(errorName { _ = try other.begin(timeout: .zero) } == "invalid")
  }

  @Test(
    "A reply that is released goes as was stated, without a timeout (G27)",
    arguments: [Reply.Answer.allow, .cancel])
  func released(unanswered: Reply.Answer) throws {
    let registry = try Registry()
    let listener = Listener(Tracker(), answersAtOnce: false)
    let session = try Session(in: registry, delegate: listener)
    let task = try session.begin(unanswered: unanswered)
    try task.respond([1])
    try task.send([2])
    listener.reply.value = nil
    task.finish()
    let expected = [
      ["response [1]", "data [2]", "progress 1", "finished []"],
      ["response [1]", "cancelled"],
    ]
    #expect(listener.told == expected[unanswered == .allow ? 0 : 1])
  }

  @Test("Finishing and cancelling from all sides: one end, last (G24, A12)")
  func race() throws {
    let registry = try Registry(level: .lifecycle)
    let tracker = Tracker()
    for round in 0..<100 {
      let listener = Listener(tracker)
      let queue = round % 2 == 0 ? try CallQueue(in: registry) : nil
      let session = try Session(in: registry, delegate: listener, queue: queue)
      let workers = (0..<4).map { number in
        Worker {
          let task = try? session.begin()
          try? task?.send([1])
          if number == 0 { session.finish() }
          if number == 1 { session.cancel() }
          if number == 2 { task?.cancel() }
          task?.finish()
        }
      }
      for worker in workers { worker.join() }
      listener.isInvalid.wait()
      let told = listener.told
      #expect(told.filter { $0.hasPrefix("invalid") }.count == 1)
      #expect(told.last?.hasPrefix("invalid") == true)
      _ = session.end(waiting: Self.long)
      _ = queue?.end(waiting: Self.long)
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("C and Swift work on one session")
  func interchange() throws {
    let registry = try Registry()
    let listener = Listener(Tracker())
    let session = try Session(in: registry, delegate: listener)
    var handle: UInt64 = 0
    #expect(cbr_task_begin(session.handle, nil, &handle) == CBR_OK)
    var byte: UInt8 = 8
    #expect(cbr_task_data(handle, &byte, 1) == CBR_OK)
    let task = try #require(SessionTask.task(of: handle))
    #expect(task.handle == handle)
    try task.send([9])
    #expect(task.finish().isEnded)
    #expect(listener.told == ["data [8]", "data [9]", "finished []"])
    let mine = try session.begin()
    #expect(SessionTask.task(of: mine.handle) === mine)
    #expect(cbr_task_cancel(mine.handle) == CBR_OK)
    #expect(SessionTask.task(of: mine.handle) == nil)
    let same = try #require(Session(handle: session.handle))
    #expect(same.finish().isEnded)
    #expect(listener.told.suffix(2) == ["cancelled", "invalid: ended"])
    #expect(Session(handle: session.handle) == nil)
  }
}
