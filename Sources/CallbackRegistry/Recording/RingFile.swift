// SPDX-License-Identifier: Apache-2.0
//
// The file in which the rings of a process live, so that what was recorded is
// there after it was killed. Layout, in bytes:
//
//     0         RingFileHeader, in a page of its own
//     65 536    two halves of 128 KiB for names that are in no database yet
//     327 680   areas, one for each ring: 1 KiB for the Ring, 2 KiB for the
//               calls in flight, and at 4 KiB its records
//
// All of it is reserved on the disk before it is mapped. The structures in it
// are written by this library and read by the same format of it only; whoever
// reads them after a crash believes no pointer and no number in them.
//
// Shared variables
//   all of the header's are stored (releasing) after what they count is whole,
//   so that a reader of the file finds it whole: segmentCount by the writer,
//   the others with the recorder's monitor held

import CPlatform
import Synchronization

/// Whose rings a file has, and how they lie in it.
package struct RingFileIdentity {
  /// "CBRRINGS" in memory order.
  static let magic: UInt64 = 0x5347_4E49_5252_4243
  static let format: UInt64 = 1

  /// Room for the text of a UUID, zero-ended.
  package typealias Identifier = (UInt64, UInt64, UInt64, UInt64, UInt64)
  static let textBytes = 36

  let magic: UInt64
  let format: UInt64
  let areaBytes: UInt64
  let ringRecords: UInt64
  let epoch: UInt64
  /// The same moment on two clocks.
  let openedTicks: UInt64
  let openedNanoseconds: UInt64
  /// The run's identifier, and the machine's boot's.
  var run: Identifier
  var boot: Identifier

  init(
    ringRecords: UInt64, openedTicks: UInt64, openedNanoseconds: UInt64,
    run: Identifier, boot: Identifier
  ) {
    magic = Self.magic
    format = Self.format
    areaBytes = RingFileLayout.areaBytes(records: ringRecords)
    self.ringRecords = ringRecords
    epoch = cbr_random()
    self.openedTicks = openedTicks
    self.openedNanoseconds = openedNanoseconds
    self.run = run
    self.boot = boot
  }

  /// The identifier of the machine's present boot.
  static var presentBoot: Identifier {
    var boot: Identifier = (0, 0, 0, 0, 0)
    withUnsafeMutableBytes(of: &boot) { bytes in
      cbr_boot_identity(
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return boot
  }

  private static var mostRecords: UInt64 { 1 << 24 }

  /// Whether rings that lie so can be read by this library.
  var isKnown: Bool {
    magic == Self.magic && format == Self.format && ringRecords > 0
      && ringRecords & (ringRecords - 1) == 0
      && ringRecords <= Self.mostRecords
      && areaBytes == RingFileLayout.areaBytes(records: ringRecords)
  }

  /// CRC-32C of all words.
  var check: UInt32 {
    withUnsafeBytes(of: self) { bytes in
      var sum: UInt32 = 0
      for word in bytes.bindMemory(to: UInt64.self) {
        sum = cbr_check(sum, word)
      }
      return sum
    }
  }
}

/// What is needed to read a file of rings after its process has died.
package struct RingFileHeader: ~Copyable {
  let identity: RingFileIdentity
  let check: UInt64

  /// Rings so far.
  let areas = Atomic<UInt64>(0)
  /// Calls so far that were counted because a ring was full.
  let aggregated = Atomic<UInt64>(0)
  /// Which half has the names, and how much of each is used.
  let active = Atomic<UInt64>(0)
  let usedOfFirst = Atomic<UInt64>(0)
  let usedOfSecond = Atomic<UInt64>(0)
  /// Segments of the clock so far; the last ones are kept.
  let segmentCount = Atomic<UInt64>(0)
  /// How the process has begun to end the history (`RunEnding`).
  let ending = Atomic<UInt64>(0)

  init(_ identity: RingFileIdentity) {
    self.identity = identity
    check = UInt64(identity.check)
  }
}

package typealias RingFileHeaderPointer = UnsafeMutablePointer<RingFileHeader>

/// Where things are in a file of rings.
package enum RingFileLayout {
  package static let headerBytes: UInt64 = 65_536
  package static let halfBytes: UInt64 = 131_072
  package static let firstArea = headerBytes + 2 * halfBytes
  /// In an area, before its records.
  package static let ringBytes: UInt64 = 4_096
  /// In an area, within what comes before the records.
  package static let inFlightOffset = 1_024
  /// In the header.
  package static let segmentsOffset = 1_024
  package static let segmentCapacity: UInt64 = 1_024

  /// The size of a ring's area, in whole pages of any processor.
  package static func areaBytes(records: UInt64) -> UInt64 {
    let bytes = ringBytes + records * UInt64(EventLayout.recordBytes)
    return (bytes + 65_535) & ~65_535
  }
}

/// A straight piece of the conversion of ticks to nanoseconds.
package struct ClockSegment {
  package let ticks: UInt64
  package let nanoseconds: UInt64
  /// Nanoseconds per tick, times 2^32.
  package let rate: UInt64

  package init(ticks: UInt64, nanoseconds: UInt64, rate: UInt64) {
    self.ticks = ticks
    self.nanoseconds = nanoseconds
    self.rate = rate
  }
}

extension UnsafeMutablePointer where Pointee == RingFileHeader {
  /// Places for segments of the clock.
  package var segments: UnsafeMutablePointer<ClockSegment> {
    (UnsafeMutableRawPointer(self) + RingFileLayout.segmentsOffset)
      .assumingMemoryBound(to: ClockSegment.self)
  }

  /// The clock has begun anew.
  package func forgetSegments() {
    pointee.segmentCount.store(0, ordering: .releasing)
  }

  /// Adds a segment; the oldest makes room.
  package func append(_ segment: ClockSegment) {
    let count = pointee.segmentCount.load(ordering: .relaxed)
    segments[Int(count % RingFileLayout.segmentCapacity)] = segment
    pointee.segmentCount.store(count &+ 1, ordering: .releasing)
  }
}

extension UnsafeMutablePointer where Pointee == Recorder {
  /// In a forked child: closes the descriptors of the file of rings.
  package func closeFileOnly() { pointee.file?.closeDescriptors() }
}

/// The file of rings of one history, in the process that makes it.
package struct RingFile: ~Copyable {
  package let file: Int32
  /// Another descriptor, which has the file locked.
  private let lock: Int32
  package let header: RingFileHeaderPointer
  private let areaBytes: UInt64

  /// Makes the file and reserves all but its areas; nil: there is no room, or
  /// it cannot be made there.
  ///
  /// Nobody takes it for a dead process's before it has been published, by
  /// being given its name.
  init?(at path: UnsafePointer<CChar>, identity: RingFileIdentity) {
    var lock: Int32 = -1
    let file = cbr_file_make(path, &lock)
    guard file >= 0 else { return nil }
    guard
      let memory = cbr_file_extend(file, 0, RingFileLayout.firstArea)
    else {
      _ = cbr_file_remove(path)
      cbr_file_close(file)
      cbr_file_close(lock)
      return nil
    }
    self.file = file
    self.lock = lock
    areaBytes = identity.areaBytes
    header = memory.bindMemory(to: RingFileHeader.self, capacity: 1)
    header.initialize(to: RingFileHeader(identity))
  }

  /// In a forked child: only the descriptors.
  ///
  /// Its copies of the mappings stay, and do not keep the lock.
  fileprivate func closeDescriptors() {
    cbr_file_close(file)
    cbr_file_close(lock)
  }

  /// Unmaps the header and ends the lock.
  package func close() {
    cbr_file_unmap(header, RingFileLayout.firstArea)
    closeDescriptors()
  }

  /// Reserves the next area; nil: there is no room.
  ///
  /// The recorder's monitor is held.
  func addArea() -> UnsafeMutableRawPointer? {
    let number = header.pointee.areas.load(ordering: .relaxed)
    return cbr_file_extend(
      file, RingFileLayout.firstArea + number * areaBytes, areaBytes)
  }

  /// Counts an area, when the ring in it can be read.
  func publishArea() {
    header.pointee.areas.wrappingAdd(1, ordering: .releasing)
  }

  func unmap(area: UnsafeMutableRawPointer) {
    cbr_file_unmap(area, areaBytes)
  }
}
