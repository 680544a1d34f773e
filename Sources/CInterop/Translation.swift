// SPDX-License-Identifier: Apache-2.0

internal import CCallbackRegistry
import CPlatform
import CallbackRegistry

/// Between the header's types and the engine's.
///
/// Each engine type that says so has the layout of its C twin; a test compares
/// the sizes and every value.
extension Status {
  /// The same number in C.
  @inline(__always)
  var inC: cbr_status { cbr_status(rawValue: rawValue) }
}

extension UnsafeMutablePointer where Pointee == cbr_call {
  @inline(__always)
  var record: CallPointer {
    UnsafeMutableRawPointer(self).assumingMemoryBound(to: CallRecord.self)
  }
}

/// A failure that comes from the arguments alone.
@inline(never)
func refuse(_ sentence: StaticString) -> cbr_status {
  guard let thread = Process.currentThread() else {
    return Status.noMemory.inC
  }
  return thread.fail(.invalid) { $0.append(sentence) }.inC
}

extension InterfaceDescription {
  /// Nil when the structure is of an unknown size.
  init?(_ interface: UnsafePointer<cbr_interface>) {
    guard StructureSize.isKnown(interface) else { return nil }
    self.init(
      name: interface.pointee.name, version: interface.pointee.version,
      count: interface.pointee.count,
      methods: UnsafeRawPointer(interface.pointee.methods)?
        .assumingMemoryBound(to: MethodDescription.self))
  }
}

/// Structures begin with their size.
///
/// A newer caller's longer one is accepted when what this library does not know
/// of is zero.
enum StructureSize {
  static func isKnown<Structure>(
    _ structure: UnsafePointer<Structure>
  ) -> Bool {
    let bytes = UnsafeRawPointer(structure)
    let size = bytes.load(as: Int.self)
    let known = MemoryLayout<Structure>.size
    guard size >= known, size <= 1 << 16 else { return false }
    for offset in known..<size
    where bytes.load(fromByteOffset: offset, as: UInt8.self) != 0 {
      return false
    }
    return true
  }
}
