// SPDX-License-Identifier: Apache-2.0
//
// Converts ticks to nanoseconds of the monotonic clock.
//
// The conversion is a chain of straight segments. A segment begins where the
// one before it ends, with a slope that leads it to the true time within one
// interval. So times never go backwards, a tick is always converted to the
// same nanosecond, and an event that is behind another in ticks is not before
// it in nanoseconds: what A2 promises of ticks holds for the rows.
//
// Used by the writer alone, and by whoever opens the history before it.

import CPlatform
import Synchronization

struct TickClock: ~Copyable {
  /// The same moment on two clocks.
  struct Sample {
    let ticks: UInt64
    let nanoseconds: UInt64
  }

  /// An hour of segments; calls that began before are converted by the oldest.
  private static var capacity: Int { 4096 }
  private static var mask: Int { capacity - 1 }
  private static var firstInterval: UInt64 { 4_000_000 }
  private static var longestInterval: UInt64 { 1_000_000_000 }
  /// The first slope is measured over this at least.
  private static var shortestMeasurement: UInt64 { 2_000_000 }

  /// From `ticks` on: nanoseconds + (t - ticks) * rate / 2^32.
  private let segments: UnsafeMutablePointer<ClockSegment>
  private var count = 0
  /// Where segments are kept for after a crash.
  private let file: RingFileHeaderPointer?
  private var last: Sample
  private var interval = firstInterval

  /// Measures from a sample on, and keeps what it finds in a file, too; nil
  /// without memory.
  init?(from first: Sample, file: RingFileHeaderPointer? = nil) {
    guard
      let segments = Memory.allocate(ClockSegment.self, count: Self.capacity)
    else { return nil }
    self.segments = segments
    self.file = file
    last = first
  }

  /// The clock of a process that has died; nil without memory.
  ///
  /// One that had measured nothing yet is measured up to now, if the machine
  /// has not been started anew.
  init?(of file: RingFileHeaderPointer, isSameBoot: Bool) {
    let opened = Sample(
      ticks: file.pointee.identity.openedTicks,
      nanoseconds: file.pointee.identity.openedNanoseconds)
    self.init(from: opened)
    let kept = file.pointee.segmentCount.load(ordering: .acquiring)
    let capacity = RingFileLayout.segmentCapacity
    for number in max(kept, capacity) - capacity..<kept {
      append(file.segments[Int(number % capacity)])
    }
    guard count == 0 else { return }
    let rate = isSameBoot ? Self.rate(from: opened, to: Self.sample()) : 1 << 32
    append(
      ClockSegment(
        ticks: opened.ticks, nanoseconds: opened.nanoseconds, rate: rate))
  }

  deinit { Memory.release(segments) }

  /// Whether ticks can be converted; until then, when that will be so.
  var isReadyAt: Deadline {
    count > 0
      ? Deadline(nanoseconds: 0)
      : Deadline(nanoseconds: last.nanoseconds + Self.shortestMeasurement)
  }

  /// The pair of stamps with the least time between them.
  static func sample() -> Sample {
    var best = Sample(ticks: 0, nanoseconds: 0)
    var least = UInt64.max
    for _ in 0..<5 {
      let before = cbr_ticks()
      let nanoseconds = cbr_monotonic_nanoseconds()
      let width = cbr_ticks() &- before
      if width < least {
        least = width
        best = Sample(ticks: before &+ width / 2, nanoseconds: nanoseconds)
      }
    }
    return best
  }

  /// Begins a new segment when it is time to; returns its beginning then.
  mutating func adjust() -> Sample? {
    let now = Self.sample()
    let elapsed = now.nanoseconds &- last.nanoseconds
    if count == 0 {
      let rate = Self.rate(from: last, to: now)
      append(
        ClockSegment(
          ticks: last.ticks, nanoseconds: last.nanoseconds, rate: rate))
      return last
    }
    guard elapsed >= interval else { return nil }
    if now.ticks <= last.ticks { return restart(at: now) }
    let reached = nanoseconds(at: now.ticks)
    let rate = Self.rate(from: last, to: now)
    let next = min(interval * 4, Self.longestInterval)
    let error = Int64(bitPattern: now.nanoseconds &- reached)
    if error > Int64(next) {
      // The processor slept or was moved: forward at once.
      append(
        ClockSegment(ticks: now.ticks, nanoseconds: now.nanoseconds, rate: rate)
      )
    } else {
      let share = Double(max(error, -Int64(next / 2))) / Double(next)
      append(
        ClockSegment(
          ticks: now.ticks, nanoseconds: reached,
          rate: UInt64(Double(rate) * (1 + share))))
    }
    last = now
    interval = next
    return now
  }

  /// The counter went back, as when a virtual machine is moved: what it says
  /// from now on has nothing to do with what it said before.
  private mutating func restart(at now: Sample) -> Sample {
    let newest = segments[(count - 1) & Self.mask]
    let reached = nanoseconds(at: last.ticks)
    count = 0
    file?.forgetSegments()
    append(
      ClockSegment(
        ticks: now.ticks, nanoseconds: max(now.nanoseconds, reached),
        rate: newest.rate))
    last = now
    return now
  }

  private mutating func append(_ segment: ClockSegment) {
    segments[count & Self.mask] = segment
    count += 1
    file?.append(segment)
  }

  /// Nanoseconds per tick, times 2^32.
  private static func rate(from: Sample, to: Sample) -> UInt64 {
    let ticks = to.ticks &- from.ticks
    if ticks == 0 || !cbr_counter_is_trusted() { return 1 << 32 }
    let ratio = Double(to.nanoseconds &- from.nanoseconds) / Double(ticks)
    // From a thousandth to a thousand nanoseconds: no counter is beyond that.
    return UInt64(min(max(ratio, 0.001), 1_000) * 4_294_967_296)
  }

  /// Converts a time stamp.
  @inline(__always)
  func nanoseconds(at ticks: UInt64) -> UInt64 {
    let newest = segments[(count &- 1) & Self.mask]
    if ticks >= newest.ticks {
      return newest.nanoseconds
        &+ Self.product(ticks &- newest.ticks, newest.rate)
    }
    return olderNanoseconds(at: ticks)
  }

  /// Converts a duration.
  @inline(__always)
  func nanoseconds(during ticks: UInt64) -> UInt64 {
    Self.product(ticks, segments[(count &- 1) & Self.mask].rate)
  }

  private func olderNanoseconds(at ticks: UInt64) -> UInt64 {
    var low = max(0, count - Self.capacity)
    var high = count - 1
    // The last segment that begins at or before the stamp, else the oldest.
    while low < high {
      let middle = (low + high + 1) / 2
      if segments[middle & Self.mask].ticks <= ticks {
        low = middle
      } else {
        high = middle - 1
      }
    }
    let segment = segments[low & Self.mask]
    if ticks >= segment.ticks {
      return segment.nanoseconds
        &+ Self.product(ticks &- segment.ticks, segment.rate)
    }
    let before = Self.product(segment.ticks &- ticks, segment.rate)
    return segment.nanoseconds > before ? segment.nanoseconds - before : 0
  }

  @inline(__always)
  private static func product(_ ticks: UInt64, _ rate: UInt64) -> UInt64 {
    let (high, low) = ticks.multipliedFullWidth(by: rate)
    return high << 32 | low >> 32
  }
}
