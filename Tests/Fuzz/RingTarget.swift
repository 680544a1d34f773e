// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import CallbackRegistry

/// How bytes become a file of rings. The first one says:
///
///     1   the header's identity and check are made right
///     2   the records' checks are made right
///     4   the bytes are the file; else they are changes of a whole one
///     8   the file ends where the next two bytes say, in units of 8 bytes
///     16  the first ring has been written up to a record and an event, each
///         of two bytes
///
/// A change is a part of the file, an offset of two bytes in it, a number of
/// bytes, and these.
enum RingTarget {
  // A fuzzer has one thread.
  nonisolated(unsafe) private static var sandbox = {
    atexit { RingTarget.end() }
    return Sandbox()
  }()

  private static func end() { sandbox.remove() }

  private static let seed = Seed().rings

  /// Where the parts begin, and how long they are.
  private static let parts: [(begin: Int, bytes: Int)] = {
    let area = RingFileImage.firstArea
    let next = area + 65_536
    return [
      (0, 208), (1_024, 1_024), (65_536, 1_024), (196_608, 256),
      (area, 128), (area + 1_024, 128), (area + 4_096, 4_096),
      (next, 128), (next + 1_024, 128), (next + 4_096, 1_024),
    ]
  }()

  static func run(_ input: [UInt8]) {
    var input = input[...]
    let mode = input.popFirst() ?? 0
    let length = mode & 8 != 0 ? 8 * number(&input) : Int.max
    let written =
      mode & 16 != 0 ? (number(&input), number(&input)) : nil
    var image = mode & 4 != 0 ? whole(input) : changed(input)
    let run = sandbox.beginRun()
    if let written {
      sandbox.noteWritten(position: written.0, events: written.1)
    }
    if mode & 1 != 0 {
      image.set(run: run)
      image.repairIdentity()
    }
    if mode & 2 != 0 { image.repairRecords() }
    image.cut(to: length)
    sandbox.judge(image)
  }

  private static func number(_ input: inout ArraySlice<UInt8>) -> Int {
    Int(input.popFirst() ?? 0) << 8 | Int(input.popFirst() ?? 0)
  }

  private static func whole(_ input: ArraySlice<UInt8>) -> RingFileImage {
    var bytes = seed.bytes.map { _ in UInt8(0) }
    let input = input.prefix(bytes.count)
    bytes.replaceSubrange(0..<input.count, with: input)
    return RingFileImage(bytes: bytes)
  }

  private static func changed(_ input: ArraySlice<UInt8>) -> RingFileImage {
    var image = seed
    var input = input
    while let part = input.popFirst() {
      let (begin, size) = parts[Int(part) % parts.count]
      let offset = number(&input) % size
      let count = min(Int(input.popFirst() ?? 0), input.count, size - offset)
      image.bytes.replaceSubrange(
        (begin + offset)..<(begin + offset + count), with: input.prefix(count))
      input = input.dropFirst(count)
    }
    return image
  }
}

@c(fuzz_rings)
package func fuzzRings(_ bytes: UnsafePointer<UInt8>, _ count: Int) {
  RingTarget.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
}
