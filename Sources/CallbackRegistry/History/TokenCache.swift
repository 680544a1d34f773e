// SPDX-License-Identifier: Apache-2.0

/// Rows of handles that were looked up lately, one for each place: a handle
/// with the same place takes it over.
struct TokenCache: ~Copyable {
  struct Entry {
    var handle: UInt64 = 0
    var registration: Int64 = 0
    var callback: Int64 = 0
  }

  private static var placeBits: UInt64 { 16 }

  private let entries: UnsafeMutablePointer<Entry>

  /// Nil without memory.
  init?() {
    guard
      let entries = Memory.allocate(Entry.self, count: 1 << Self.placeBits)
    else { return nil }
    self.entries = entries
  }

  deinit { Memory.release(entries) }

  /// The zero handle, which is never given out, marks a place as empty.
  mutating func clear() {
    entries.update(repeating: Entry(), count: 1 << Self.placeBits)
  }

  func find(_ handle: UInt64) -> Entry? {
    let entry = entries[place(of: handle)]
    return entry.handle == handle ? entry : nil
  }

  mutating func keep(_ entry: Entry) {
    entries[place(of: entry.handle)] = entry
  }

  mutating func remove(_ handle: UInt64) {
    let place = place(of: handle)
    if entries[place].handle == handle { entries[place] = Entry() }
  }

  private func place(of handle: UInt64) -> Int {
    Int(
      truncatingIfNeeded: (handle &* 0x9E37_79B9_7F4A_7C15)
        &>> (64 - Self.placeBits))
  }
}
