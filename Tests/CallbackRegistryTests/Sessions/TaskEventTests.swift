// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

@Suite("Events of tasks that are awaited")
struct TaskEventTests {
  @Test("A task's events are awaited in order, its end last (G24)")
  func order() async throws {
    let registry = try Registry()
    let session = try Session("streams", in: registry)
    let task = try session.begin()
    let producer = Worker {
      #expect(throws: Never.self) {
        try task.respond([1])
        try task.send([2])
        try task.send([3])
      }
      task.finish()
      session.finish()
    }
    var told: [String] = []
    for await event in task.events {
      switch event {
      case .response(let bytes, let reply):
        told.append("response \(bytes)")
        try reply.allow()
      case .data(let bytes): told.append("data \(bytes)")
      case .complete(.finished): told.append("finished")
      case .complete(let end): told.append("\(end)")
      }
    }
    producer.join()
    #expect(told == ["response [1]", "data [2]", "data [3]", "finished"])
    #expect(!session.isLive)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("A response that nobody answers ends the task (G27)")
  func unanswered() async throws {
    let registry = try Registry()
    let session = try Session(in: registry)
    let task = try session.begin()
    try task.respond()
    var ends: [String] = []
    for await event in task.events {
      if case .complete(let end) = event { ends.append("\(end)") }
    }
    #expect(ends == ["cancelled"])
    #expect(!task.isLive)
  }

  @Test("Cancelling who awaits cancels the task")
  func cancelled() async throws {
    let registry = try Registry()
    let session = try Session(in: registry)
    let task = try session.begin()
    try task.send([1])
    let first = Later<Bool>()
    let waiting = Task {
      for await _ in task.events { first.value = true }
    }
    while first.value == nil { await Task.yield() }
    waiting.cancel()
    await waiting.value
    #expect(!task.isLive)
    #expect(errorName { try task.send([2]) } == "stale")
    session.finish()
    #expect(try registry.leaks().isEmpty)
  }

  @Test("Who awaits a task hears of its end when the registry is closed (G24)")
  func closed() async throws {
    let registry = try Registry()
    let session = try Session(in: registry)
    let task = try session.begin()
    try task.send([1])
    let first = Later<Bool>()
    let waiting = Task {
      var ends: [String] = []
      for await event in task.events {
        if case .complete(let end) = event { ends.append("\(end)") }
        first.value = true
      }
      return ends
    }
    while first.value == nil { await Task.yield() }
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    #expect(await waiting.value == ["delegateGone"])
    #expect(session.finish().isAlready)
  }

  @Test("Tasks that C begins, and those of delegates, have no events")
  func others() async throws {
    let registry = try Registry()
    let session = try Session(in: registry)
    var handle: UInt64 = 0
    #expect(cbr_task_begin(session.handle, nil, &handle) == CBR_OK)
    #expect(cbr_task_respond(handle, nil, 0) == CBR_OK)
    let fromC = try #require(SessionTask.task(of: handle))
    var byte: UInt8 = 1
    #expect(cbr_task_data(handle, &byte, 1) == CBR_OK)
    #expect(cbr_task_complete(handle, 0) == CBR_OK)
    for await event in fromC.events { Issue.record("\(event)") }
    let tracker = Tracker()
    let told = try Session(
      in: registry, delegate: SessionTests.Idle(tracker))
    let task = try told.begin()
    task.finish()
    for await event in task.events { Issue.record("\(event)") }
    told.finish()
    #expect(tracker.liveCount == 0)
  }
}
