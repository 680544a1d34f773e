// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// A look into a file of rings that leaves it as it is, also while its process
/// records there.
///
/// The file is read and not mapped, and no number in it is believed.
package struct RingFileLook: ~Copyable {
  private let file: Int32
  private let header: RingFileHeaderPointer
  /// Rings that the file has room for.
  package let areas: UInt64

  /// Nil: it is no file of rings of this format, or there is no memory.
  package init?(_ file: Int32) {
    let size = Int(RingFileLayout.ringBytes)
    guard let memory = Memory.allocateBytes(size, alignment: 64) else {
      return nil
    }
    let header = memory.bindMemory(to: RingFileHeader.self, capacity: 1)
    let bytes = cbr_file_bytes(file)
    guard cbr_file_read(file, memory, 0, UInt64(size)),
      bytes >= RingFileLayout.firstArea,
      header.pointee.identity.isKnown,
      header.pointee.check == UInt64(header.pointee.identity.check)
    else {
      Memory.release(memory)
      return nil
    }
    self.file = file
    self.header = header
    areas = min(
      header.pointee.areas.load(ordering: .relaxed),
      (bytes - RingFileLayout.firstArea) / header.pointee.identity.areaBytes)
  }

  deinit { Memory.release(header) }

  /// The identifier of the run whose rings these are.
  package func withRun<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    withUnsafeBytes(of: header.pointee.identity.run) { bytes in
      body(
        UnsafeBufferPointer(
          rebasing: bytes.bindMemory(to: UInt8.self)[
            ..<RingFileIdentity.textBytes]))
    }
  }

  /// A ring's number, and how far it has come; nil where none is yet.
  package func ring(inArea area: UInt64) -> (number: UInt32, head: UInt64)? {
    guard area < areas,
      let memory = Memory.allocateBytes(
        MemoryLayout<Ring>.stride, alignment: 64)
    else { return nil }
    defer { Memory.release(memory) }
    let offset =
      RingFileLayout.firstArea + area * header.pointee.identity.areaBytes
    guard
      cbr_file_read(file, memory, offset, UInt64(MemoryLayout<Ring>.size))
    else { return nil }
    let found = memory.bindMemory(to: Ring.self, capacity: 1)
    guard found.pointee.number > 0,
      found.pointee.capacity == header.pointee.identity.ringRecords
    else { return nil }
    return (found.pointee.number, found.pointee.head.load(ordering: .relaxed))
  }
}
