// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// What SHA3-256 makes of bytes.
package struct Digest: Equatable {
  package static var bytes: Int { Int(CBR_HASH_BYTES) }

  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  /// All zero: what a chain begins with.
  package init() {}

  /// Copies its bytes.
  package init(_ bytes: UnsafeRawPointer) {
    withUnsafeMutableBytes(of: &words) { buffer in
      buffer.baseAddress?.copyMemory(from: bytes, byteCount: Self.bytes)
    }
  }

  package static func == (one: Digest, other: Digest) -> Bool {
    one.words == other.words
  }

  mutating func withMutableBytes<Result>(
    _ body: (UnsafeMutablePointer<UInt8>) -> Result
  ) -> Result {
    withUnsafeMutableBytes(of: &words) { bytes in
      body(bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    }
  }

  package func withBytes<Result, Problem: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Problem) -> Result
  ) throws(Problem) -> Result {
    try withUnsafeBytes(of: words, body)
  }
}

extension Text {
  /// Appends a digest in 64 lower-case hexadecimal digits.
  package mutating func append(_ digest: Digest) {
    digest.withBytes { bytes in
      for byte in bytes {
        var pair = (Self.digit(byte >> 4), Self.digit(byte & 15))
        withUnsafeBytes(of: &pair) { pair in
          append(
            pair.baseAddress!.assumingMemoryBound(to: CChar.self), length: 2)
        }
      }
    }
  }

  private static func digit(_ number: UInt8) -> UInt8 {
    number < 10 ? 48 + number : 87 + number
  }
}
