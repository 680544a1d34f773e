// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Builds zero-terminated text in memory of fixed size.
///
/// What does not fit is left out at a character's boundary, and counted.
package struct Text: ~Copyable {
  private let start: UnsafeMutablePointer<CChar>?
  private let capacity: Int
  private var written = 0
  /// The bytes that all of the text takes, without its ending zero.
  package private(set) var length = 0

  /// `size` counts the ending zero.
  package init(_ start: UnsafeMutablePointer<CChar>?, size: Int) {
    self.start = size > 0 ? start : nil
    capacity = start == nil ? 0 : max(0, size - 1)
    self.start?.pointee = 0
  }

  package var isCut: Bool { length > written }

  package mutating func append(_ text: StaticString) {
    append(text.characters, length: text.utf8CodeUnitCount)
  }

  // Disfavored: a choice between two literals is to be a StaticString, and not
  // a String, made on the heap, whose characters are lent.
  @_disfavoredOverload
  package mutating func append(_ text: UnsafePointer<CChar>?) {
    guard let text else { return append("(none)") }
    var length = 0
    while text[length] != 0 { length += 1 }
    append(text, length: length)
  }

  package mutating func append(_ text: UnsafePointer<CChar>, length count: Int)
  {
    defer { length += count }
    // Once something was cut, nothing that follows may be joined to it.
    guard let start, written == length else { return }
    var fitting = min(count, capacity - written)
    if fitting < count {
      // A UTF-8 continuation byte is 10xxxxxx: cut before its character.
      while fitting > 0, UInt8(bitPattern: text[fitting]) & 0xC0 == 0x80 {
        fitting -= 1
      }
    }
    (start + written).update(from: text, count: fitting)
    written += fitting
    start[written] = 0
  }

  package mutating func append(_ number: UInt64) {
    appendDigits(number, base: 10, atLeast: 1)
  }

  package mutating func append(_ number: Int64) {
    if number < 0 { append("-") }
    append(number.magnitude)
  }

  package mutating func append(_ number: UInt32) { append(UInt64(number)) }
  package mutating func append(_ number: Int) { append(Int64(number)) }

  /// Appends a handle as `0x0123456789abcdef`.
  package mutating func append(hexadecimal number: UInt64) {
    append("0x")
    appendDigits(number, base: 16, atLeast: 16)
  }

  /// Appends nanoseconds with a unit that suits them, such as "1.234 s".
  package mutating func append(nanoseconds: UInt64) {
    switch nanoseconds {
    case ..<1_000:
      append(nanoseconds)
      append(" ns")
    case ..<1_000_000:
      appendThousandths(nanoseconds)
      append(" us")
    case ..<1_000_000_000:
      appendThousandths(nanoseconds / 1_000)
      append(" ms")
    default:
      appendThousandths(nanoseconds / 1_000_000)
      append(" s")
    }
  }

  private mutating func appendThousandths(_ number: UInt64) {
    append(number / 1_000)
    append(".")
    appendDigits(number % 1_000, base: 10, atLeast: 3)
  }

  private mutating func appendDigits(
    _ number: UInt64, base: UInt64, atLeast: Int
  ) {
    // 20 decimal digits hold 64 bits. The number is written from its end.
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &digits) { buffer in
      var rest = number
      var index = buffer.count
      repeat {
        index -= 1
        let digit = UInt8(truncatingIfNeeded: rest % base)
        buffer[index] = digit < 10 ? 48 + digit : 87 + digit
        rest /= base
      } while rest > 0 || buffer.count - index < atLeast
      append(
        UnsafeRawPointer(buffer.baseAddress! + index)
          .assumingMemoryBound(to: CChar.self), length: buffer.count - index)
    }
  }
}

extension StaticString {
  /// The text as C sees it, with its ending zero.
  ///
  /// It lasts as long as the program.
  package var characters: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}

/// The length of zero-terminated text, looked at up to `limit` bytes.
package func length(
  of text: UnsafePointer<CChar>, limit: Int
) -> Int {
  cbr_text_length(text, limit)
}
