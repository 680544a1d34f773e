// SPDX-License-Identifier: Apache-2.0

/// Calls that the engine counted because a ring was full: taken over from the
/// recorder together, and written in one batch or several.
struct Aggregates: ~Copyable {
  private var table = AggregateTable()
  private var place = Ahead(0)
  private var isMoreWaiting = false
  /// When the table was taken over, and when the one before it, in ticks.
  private(set) var began: UInt64
  private(set) var ended: UInt64

  init(now: UInt64) {
    began = now
    ended = now
  }

  /// Whether something is not written that was there at the last look.
  var areLeft: Bool { isMoreWaiting || !table.isEmpty }

  /// Takes over the recorder's table if all of the last one is written.
  ///
  /// The recorder's lock is held.
  mutating func take(from recorder: RecorderPointer, now: UInt64) {
    isMoreWaiting = !recorder.pointee.aggregates.isEmpty
    guard table.isEmpty, isMoreWaiting else { return }
    recorder.pointee.aggregates.moveAll(to: &table)
    isMoreWaiting = false
    began = ended
    ended = now
  }

  /// The next token's calls; nil when there are no more.
  mutating func next() -> AggregatedCalls? { table.next(from: &place.working) }

  mutating func commit() {
    place.commit()
    if table.isPast(place.committed) {
      table.removeAll()
      place = Ahead(0)
    }
  }

  mutating func revert() { place.revert() }
}
