// SPDX-License-Identifier: Apache-2.0
//
// The narrow interface between the engine and a history: rings to record in,
// and a dictionary to name things by. The engine writes, a writer reads; a
// recorder whose rings survive the process can take this one's place.
//
// Guarded by `monitor`: the dictionaries, growth of the list of rings, losses,
// and waiting for room. `state`, `firstRing`, `blocked` and `lost` are atomic,
// so that recording takes no lock while there is room.

import Synchronization

package struct Recorder: ~Copyable {
  package enum State: UInt32 {
    /// Nothing can be kept and nothing waits: events are counted as lost.
    case degraded = 2
    case good = 1
  }

  /// No other recorder of the process ever has the same.
  package let identity: UInt64
  package let monitor: Monitor
  /// Wakes the writer before its time.
  package let writer: Monitor
  package let state = Atomic<UInt32>(State.good.rawValue)
  /// Rings are added at the front and stay until the recorder goes.
  package let firstRing = Atomic<UInt>(0)
  /// Producers that wait for room.
  package let blocked = Atomic<UInt32>(0)
  /// Set when the writer is to look at once.
  package let isWriterWanted = Atomic<Bool>(false)
  package let ringRecords: UInt64
  package let blockTimeoutNanoseconds: UInt64
  package let callPolicy: OverflowPolicy
  package let eventPolicy: OverflowPolicy
  /// Starts what reads the rings, when the first one is made.
  package let start: @convention(c) (UnsafeMutableRawPointer?) -> Void
  package let startArgument: UnsafeMutableRawPointer?

  /// Events of threads that could not get a ring.
  package let withoutRing = Atomic<UInt64>(0)
  /// Rings for which the file of rings found no room.
  package let unprotected = Atomic<UInt32>(0)
  /// Events that found no room in their ring.
  package let lost = Atomic<UInt64>(0)

  /// Where the rings survive the process; nil: in memory alone.
  package var file: RingFile?

  package var callbacks = Dictionary()
  package var sites = Dictionary()
  /// How many of them are in the database.
  var savedCallbacks = 0
  var savedSites = 0
  package var aggregates = AggregateTable()
  fileprivate(set) var ringCount: UInt32 = 0

  package init(
    identity: UInt64, monitor: Monitor, writer: Monitor, ringRecords: UInt64,
    blockTimeoutNanoseconds: UInt64, callPolicy: OverflowPolicy,
    eventPolicy: OverflowPolicy,
    startArgument: UnsafeMutableRawPointer?,
    start: @escaping @convention(c) (UnsafeMutableRawPointer?) -> Void
  ) {
    self.identity = identity
    self.monitor = monitor
    self.writer = writer
    self.ringRecords = ringRecords
    self.blockTimeoutNanoseconds = blockTimeoutNanoseconds
    self.callPolicy = callPolicy
    self.eventPolicy = eventPolicy
    self.startArgument = startArgument
    self.start = start
  }
}

package typealias RecorderPointer = UnsafeMutablePointer<Recorder>

/// What a recorder notes about a thread that begins to use it.
package struct ThreadIdentity {
  package let number: UInt32
  package let kernelNumber: UInt32
  package let name: (UInt64, UInt64)
  /// When it began to use the library, in ticks.
  package let began: UInt64

  package init(
    number: UInt32, kernelNumber: UInt32, name: (UInt64, UInt64),
    began: UInt64 = Ticks.now
  ) {
    self.began = began
    self.number = number
    self.kernelNumber = kernelNumber
    self.name = name
  }
}

extension UnsafeMutablePointer where Pointee == Recorder {
  package var firstRing: RingPointer? {
    RingPointer(bitPattern: pointee.firstRing.load(ordering: .acquiring))
  }

  /// Frees every ring and what the recorder itself holds.
  package func destroy() {
    var ring = firstRing
    while let each = ring {
      ring = each.pointee.next
      if each.pointee.isInFile {
        pointee.file?.unmap(area: UnsafeMutableRawPointer(each))
      } else {
        each.destroy()
      }
    }
    pointee.file?.close()
    pointee.monitor.destroy()
    pointee.writer.destroy()
    deinitialize(count: 1)
  }

  /// Takes over the rings of a process that has died: `ring` numbers them from
  /// 1 to `count`, the last one first.
  package func adopt(rings ring: RingPointer?, count: UInt32) {
    pointee.ringCount = count
    pointee.firstRing.store(UInt(bitPattern: ring), ordering: .releasing)
  }

  /// Gives a thread a ring of its own: one whose thread has ended, if there is
  /// one.
  ///
  /// Nil without memory.
  package func takeRing(
    for thread: ThreadIdentity, isAlive: (UInt32) -> Bool
  ) -> RingPointer? {
    if let own = ring(heldBy: thread.number) { return own }
    var ring = firstRing
    while let each = ring {
      let holder = each.pointee.holder.load(ordering: .acquiring)
      if !isAlive(holder) {
        let (isTaken, _) = each.pointee.holder.compareExchange(
          expected: holder, desired: thread.number, ordering: .acquiring)
        if isTaken { break }
      }
      ring = each.pointee.next
    }
    let taken = ring ?? addRing(holder: thread.number)
    if let taken { announce(thread, in: taken) }
    return taken
  }

  /// The ring of a thread that has forgotten it (HeldRings.swift).
  private func ring(heldBy number: UInt32) -> RingPointer? {
    var ring = firstRing
    while let each = ring {
      if each.pointee.holder.load(ordering: .relaxed) == number { return each }
      ring = each.pointee.next
    }
    return nil
  }

  private func addRing(holder: UInt32) -> RingPointer? {
    let added: RingPointer? = pointee.monitor.locked {
      guard let ring = makeRing(holder: holder) else { return nil }
      pointee.ringCount += 1
      pointee.firstRing.store(UInt(bitPattern: ring), ordering: .releasing)
      return ring
    }
    if added != nil { pointee.start(pointee.startArgument) }
    return added
  }

  /// Events so far that found no room in their ring.
  package var lostEvents: UInt64 { pointee.lost.load(ordering: .relaxed) }

  package var fileHeader: RingFileHeaderPointer? { pointee.file?.header }

  /// Makes a ring in the file, if there is one and the disk has room, else in
  /// memory.
  ///
  /// The recorder's monitor is held.
  private func makeRing(holder: UInt32) -> RingPointer? {
    let number = pointee.ringCount + 1
    guard let header = fileHeader, let area = pointee.file?.addArea() else {
      if pointee.file != nil {
        pointee.unprotected.wrappingAdd(1, ordering: .relaxed)
      }
      return .make(
        number: number, capacity: pointee.ringRecords, holder: holder,
        next: firstRing)
    }
    let ring = RingPointer.make(
      in: area, seed: RingPointer.seed(of: header, number: number),
      number: number, capacity: pointee.ringRecords, holder: holder,
      next: firstRing)
    pointee.file?.publishArea()
    return ring
  }

  /// Tells the reader whose events follow in a ring.
  private func announce(_ thread: ThreadIdentity, in ring: RingPointer) {
    var words = (
      UInt64(thread.number) << 32 | UInt64(thread.kernelNumber),
      thread.name.0, thread.name.1
    )
    withUnsafeBytes(of: &words) { bytes in
      _ = record(
        .thread, in: ring, handle: 0, argument: thread.number,
        time: thread.began, payload: bytes)
    }
  }
}
