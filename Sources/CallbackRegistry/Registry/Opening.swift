// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// How a registry is opened.
///
/// Zero means the documented default.
package struct RegistryOptions {
  package var label: UnsafePointer<CChar>?
  package var historyPath: UnsafePointer<CChar>?
  package var level: UInt32 = 0
  package var strictness: UInt32 = 0
  package var ringBytes: UInt64 = 0
  package var callsPerSecond: UInt64 = 0
  package var blockTimeoutNanoseconds: UInt64 = 0
  package var maxBytes: UInt64 = 0
  package var maxCalls: UInt64 = 0
  package var maxEvents: UInt64 = 0
  package var maxCallAge: UInt64 = 0
  package var maxEventAge: UInt64 = 0
  package var callPolicy: UInt32 = 0
  package var eventPolicy: UInt32 = 0
  package var emissionLimit: UInt32 = 0
  package var historyChanged: StateChanged?
  package var historyContext: UnsafeMutableRawPointer?
  /// Given the context once, when nobody is told any more; not when the
  /// registry was not opened.
  package var historyDestroy: Destroy?
  package var ringDirectory: UnsafePointer<CChar>?

  package init() {}

  package static let strictLeaks: UInt32 = 1
}

package enum Opening {
  package static func open(
    _ options: RegistryOptions, out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try validate(options, thread: thread)
      out.pointee = try open(options, thread: thread)
      return .ok
    } catch {
      return thread.fail(error)
    }
  }

  private static func open(
    _ options: RegistryOptions, thread: ThreadPointer
  ) throws(Status) -> UInt64 {
    var status = Status.ok
    let history = try openHistory(options, thread: thread)
    let room = Memory.allocate(RegistryRecord.self)
    let lock = Monitor.make()
    let chunk =
      room == nil || lock == nil
      ? nil : Table.takeChunk(status: &status)
    let defaultLabel: StaticString = "registry"
    let label = options.label ?? defaultLabel.characters
    let callback = history.recorder.pointee.monitor.locked {
      history.recorder.intern(.callback, text: label)
    }
    let observer = options.historyChanged.map {
      history.observe(
        $0, context: options.historyContext, destroy: options.historyDestroy)
    }
    // An observer that was asked for and could not be made is nil in this.
    let isObserved = observer.map { $0 != nil } ?? true
    guard let room, let lock, let chunk, let callback, isObserved else {
      Memory.release(room)
      lock?.destroy()
      if let chunk { Table.returnChunks(chunk) }
      if let observer = observer ?? nil {
        history.endObserving(observer, keepsContext: true)
      }
      _ = history.release(until: Deadline.after(0))
      throw status == .ok ? .noMemory : status
    }
    let level = Level(rawValue: options.level) ?? .calls
    let generation = Handle.generation(
      of: chunk.slot(0).pointee.word.load(ordering: .relaxed))
    let handle = Handle.make(
      generation: generation, index: chunk.pointee.firstIndex, kind: .registry)
    room.initialize(
      to: RegistryRecord(
        handle: handle, lock: lock, history: history, observer: observer ?? nil,
        callback: callback, strictness: options.strictness,
        emissionLimit: options.emissionLimit == 0
          ? 64 : options.emissionLimit,
        level: level, chunk: chunk))
    room.publish(chunk, thread: thread)
    return handle
  }

  private static func openHistory(
    _ options: RegistryOptions, thread: ThreadPointer
  ) throws(Status) -> HistoryPointer {
    var limits = HistoryLimits.standard(isFile: options.historyPath != nil)
    if options.maxBytes != 0 { limits.bytes = options.maxBytes }
    if options.maxCalls != 0 { limits.calls = options.maxCalls }
    if options.maxEvents != 0 { limits.events = options.maxEvents }
    if options.maxCallAge != 0 { limits.callAge = options.maxCallAge }
    if options.maxEventAge != 0 { limits.eventAge = options.maxEventAge }
    var historyOptions = HistoryOptions(
      path: options.historyPath,
      ringBytes: options.ringBytes == 0 ? 2 << 20 : options.ringBytes,
      callsPerSecond: options.callsPerSecond == 0
        ? 100_000 : options.callsPerSecond,
      blockTimeoutNanoseconds: options.blockTimeoutNanoseconds == 0
        ? 1_000_000_000 : options.blockTimeoutNanoseconds,
      limits: limits)
    historyOptions.ringDirectory = options.ringDirectory
    if let policy = OverflowPolicy(rawValue: options.callPolicy) {
      historyOptions.callPolicy = policy
    }
    if let policy = OverflowPolicy(rawValue: options.eventPolicy) {
      historyOptions.eventPolicy = policy
    }
    var status = Status.ok
    var history: HistoryPointer?
    let failed = thread.fail(.audit) { text in
      history = HistoryPointer.open(
        historyOptions, status: &status, problem: &text)
    }
    guard let history else {
      throw status == failed ? thread.toThrow(failed) : status
    }
    thread.pointee.error = ErrorRecord()
    return history
  }

  private static func validate(
    _ options: RegistryOptions, thread: ThreadPointer
  ) throws(Status) {
    try thread.checkText(options.label, "label", limit: TextLimit.label)
    if options.level != 0, Level(rawValue: options.level) == nil {
      throw thread.invalid { text in
        text.append("level is ")
        text.append(options.level)
        text.append("; levels are 0 to 3")
      }
    }
    guard options.strictness & ~RegistryOptions.strictLeaks == 0 else {
      throw thread.invalid("strictness has unknown bits")
    }
    let bytes = options.ringBytes
    let isGoodSize =
      bytes == 0
      || bytes & (bytes - 1) == 0 && (4 << 10...1 << 30).contains(bytes)
    guard isGoodSize else {
      throw thread.invalid(
        "ring_bytes is not a power of two from 4 KiB to 1 GiB")
    }
    guard options.maxBytes == 0 || options.maxBytes >= 4 << 20 else {
      throw thread.invalid("max_bytes is less than 4 MiB")
    }
    guard options.maxCalls == 0 || options.maxCalls >= 10_000 else {
      throw thread.invalid("max_calls is less than 10 000")
    }
    guard options.maxEvents == 0 || options.maxEvents >= 10_000 else {
      throw thread.invalid("max_events is less than 10 000")
    }
    guard options.callPolicy <= OverflowPolicy.abort.rawValue else {
      throw thread.invalid("calls_overflow is not one of CBR_OVERFLOW_...")
    }
    guard options.eventPolicy <= OverflowPolicy.abort.rawValue,
      options.eventPolicy != OverflowPolicy.count.rawValue
    else {
      throw thread.invalid(
        """
        events_overflow is not one of CBR_OVERFLOW_... for events other than \
        calls
        """)
    }
    if let path = options.historyPath, path[0] == 0 {
      throw thread.invalid("history_path is empty")
    }
    guard let directory = options.ringDirectory else { return }
    guard directory[0] != 0 else {
      throw thread.invalid("ring_directory is empty")
    }
    guard options.historyPath != nil else {
      throw thread.invalid(
        "ring_directory is of no use without history_path: leave it NULL")
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Makes a new registry's handle live.
  fileprivate func publish(_ chunk: ChunkPointer, thread: ThreadPointer) {
    let slot = chunk.slot(0)
    let detail = chunk.detail(0)
    slot.pointee.body = UnsafeMutableRawPointer(self)
    slot.pointee.mode.store(
      Mode.notCallable | level.mode, ordering: .relaxed)
    detail.pointee.registeredTime = Ticks.now
    detail.pointee.callback = pointee.callback
    detail.pointee.site = 0
    detail.pointee.registeredThread = thread.pointee.number.load(
      ordering: .relaxed)
    detail.pointee.endReason.store(Reason.none, ordering: .relaxed)
    pointee.free.add(chunk, skipping: 1)
    chunk.pointee.recorder = pointee.recorder
    slot.pointee.word.store(pointee.handle, ordering: .releasing)
    chunk.pointee.registry.store(pointee.handle, ordering: .releasing)
    guard level != .off,
      let access = try? Access.registry(
        pointee.handle, thread: thread)
    else { return }
    access.registry.record(
      .opened, pointee.handle, argument: pointee.callback,
      payload: Payload(UInt64(level.rawValue)), thread: thread)
  }
}

package enum Sharing {
  /// The registry that all users of the process share, opened on first use.
  package static func registry() -> UInt64 {
    guard let thread = Process.currentThread() else { return Handle.none }
    let shared = ProcessState.shared
    return Monitor.shared.locked {
      let known = shared.pointee.sharedRegistry.load(ordering: .relaxed)
      if known != Handle.none, isOpen(known, thread: thread) { return known }
      var options = RegistryOptions()
      if let path = Process.setting("CBR_HISTORY"), path.pointee != 0 {
        options.historyPath = path
      }
      var handle = Handle.none
      if let level = level(Process.setting("CBR_LEVEL"), thread: thread) {
        options.level = level
        _ = Opening.open(options, out: &handle)
      }
      shared.pointee.sharedRegistry.store(handle, ordering: .relaxed)
      return handle
    }
  }

  private static func isOpen(_ handle: UInt64, thread: ThreadPointer) -> Bool {
    guard let access = try? Access.registry(handle, thread: thread) else {
      return false
    }
    return !access.registry.isClosing
  }

  /// The level of that name; the default without one, nil for another name.
  private static func level(
    _ name: UnsafePointer<CChar>?, thread: ThreadPointer
  ) -> UInt32? {
    guard let name, name.pointee != 0 else { return 0 }
    if isEqual(name, "off") { return Level.off.rawValue }
    if isEqual(name, "lifecycle") { return Level.lifecycle.rawValue }
    if isEqual(name, "calls") { return Level.calls.rawValue }
    _ = thread.fail(.invalid) { text in
      text.append("the environment's CBR_LEVEL is \"")
      text.append(name, length: length(of: name, limit: 64))
      text.append("\"; it can be off, lifecycle or calls")
    }
    return nil
  }

  private static func isEqual(
    _ text: UnsafePointer<CChar>, _ name: StaticString
  ) -> Bool {
    let count = name.utf8CodeUnitCount
    return length(of: text, limit: count + 1) == count
      && areEqual(text, name.characters, length: count)
  }
}
