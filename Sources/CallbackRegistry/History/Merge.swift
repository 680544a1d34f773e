// SPDX-License-Identifier: Apache-2.0

/// The rings that have events left in a batch, the one with the earliest next
/// event first: a binary heap.
struct Merge: ~Copyable {
  struct Entry {
    var time: UInt64
    let cursor: Int
  }

  private var heap = CheckedArray<Entry>()

  var first: Entry? { heap.count > 0 ? heap[0] : nil }

  /// When the other rings' first event was recorded: until then the first
  /// ring can be read without looking at them.
  var secondTime: UInt64 {
    switch heap.count {
    case ...1: .max
    case 2: heap[1].time
    default: min(heap[1].time, heap[2].time)
    }
  }

  mutating func clear() { heap.keep(0) }

  /// False without memory.
  mutating func add(cursor: Int, time: UInt64) -> Bool {
    guard heap.append(Entry(time: time, cursor: cursor)) else { return false }
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index].time < heap[parent].time else { break }
      swap(index, parent)
      index = parent
    }
    return true
  }

  /// Gives the first ring the time of its next event.
  mutating func advanceFirst(to time: UInt64) {
    heap[0].time = time
    sink()
  }

  /// Takes out the first ring.
  mutating func removeFirst() {
    heap[0] = heap[heap.count - 1]
    heap.keep(heap.count - 1)
    if heap.count > 1 { sink() }
  }

  private mutating func sink() {
    var index = 0
    while true {
      var least = index
      for child in (2 * index + 1)...(2 * index + 2)
      where child < heap.count && heap[child].time < heap[least].time {
        least = child
      }
      if least == index { return }
      swap(index, least)
      index = least
    }
  }

  private mutating func swap(_ one: Int, _ other: Int) {
    let entry = heap[one]
    heap[one] = heap[other]
    heap[other] = entry
  }
}
