// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// The address of a type's metadata, which is unique in the process: what
  /// stands for the type in the engine and in C.
  @inlinable
  func metadataAddress<Type>(of type: Type.Type) -> UInt64 {
    UInt64(UInt(bitPattern: unsafeBitCast(type, to: Int.self)))
  }
#endif
