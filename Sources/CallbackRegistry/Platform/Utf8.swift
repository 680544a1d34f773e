// SPDX-License-Identifier: Apache-2.0

/// What text of a program's own may contain.
package enum TextRule {
  /// UTF-8 without control characters: it becomes a part of lines.
  case name
  /// UTF-8, of as many lines as one likes.
  case lines
  /// A file's name, which the system does not ask to be UTF-8.
  case path
}

/// Where text breaks its rule; nil when it does not.
///
/// UTF-8 is as in RFC 3629: no overlong form, no surrogate, nothing above
/// U+10FFFF.
package func firstBadByte(
  _ text: UnsafePointer<CChar>, length: Int, rule: TextRule
) -> Int? {
  if rule == .path { return nil }
  var index = 0
  while index < length {
    // Most text is of such words.
    while index + 8 <= length, isPlain(UnsafeRawPointer(text + index)) {
      index += 8
    }
    if index == length { return nil }
    let byte = UInt8(bitPattern: text[index])
    if byte < 0x80 {
      let isLayout = rule == .lines && (byte == 9 || byte == 10 || byte == 13)
      if byte < 0x20 && !isLayout || byte == 0x7F { return index }
      index += 1
      continue
    }
    guard let form = multibyteForm(byte) else { return index }
    for offset in 1..<form.bytes {
      let next =
        index + offset < length ? UInt8(bitPattern: text[index + offset]) : 0
      let isGood =
        offset == 1 ? form.second.contains(next) : next & 0xC0 == 0x80
      if !isGood { return index }
    }
    index += form.bytes
  }
  return nil
}

/// Whether eight bytes are printable ASCII: each is at least a space, less than
/// 0x7F, and has no high bit.
private func isPlain(_ bytes: UnsafeRawPointer) -> Bool {
  let word = bytes.loadUnaligned(as: UInt64.self)
  let ones: UInt64 = 0x0101_0101_0101_0101
  let belowSpace = (word &- ones &* 0x20) & ~word
  let above = word &+ ones
  return (belowSpace | above | word) & (ones &* 0x80) == 0
}

/// How many bytes a character takes that begins so, and what its second one
/// may be.
private func multibyteForm(
  _ byte: UInt8
) -> (bytes: Int, second: ClosedRange<UInt8>)? {
  switch byte {
  case 0xC2...0xDF: (2, 0x80...0xBF)
  case 0xE0: (3, 0xA0...0xBF)
  case 0xED: (3, 0x80...0x9F)
  case 0xE1...0xEF: (3, 0x80...0xBF)
  case 0xF0: (4, 0x90...0xBF)
  case 0xF1...0xF3: (4, 0x80...0xBF)
  case 0xF4: (4, 0x80...0x8F)
  default: nil
  }
}
