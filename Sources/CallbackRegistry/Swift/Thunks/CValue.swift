// SPDX-License-Identifier: Apache-2.0
//
// What a thunk can pass between C and Swift: values whose bits are the same in
// both.

#if !hasFeature(Embedded)
  import CPlatform

  /// A type of C's that a value is passed as.
  public struct CType: Hashable, Sendable {
    let code: UInt32
    let size: Int
    /// Whether a value of zeros is none of Swift's.
    let isNeverZero: Bool

    private init(
      _ code: some BinaryInteger, size: Int, isNeverZero: Bool = false
    ) {
      self.code = UInt32(code)
      self.size = size
      self.isNeverZero = isNeverZero
    }

    private init(pointerThatIsNeverZero isNeverZero: Bool) {
      self.init(
        CBR_CODE_POINTER, size: MemoryLayout<UInt>.size,
        isNeverZero: isNeverZero)
    }

    /// C's `bool`.
    public static let bool = CType(CBR_CODE_BOOL, size: 1)
    /// C's `int8_t`.
    public static let int8 = CType(CBR_CODE_INT8, size: 1)
    /// C's `uint8_t`.
    public static let uint8 = CType(CBR_CODE_UINT8, size: 1)
    /// C's `int16_t`.
    public static let int16 = CType(CBR_CODE_INT16, size: 2)
    /// C's `uint16_t`.
    public static let uint16 = CType(CBR_CODE_UINT16, size: 2)
    /// C's `int32_t`, `int` and, as a rule, enumerations with negative values.
    public static let int32 = CType(CBR_CODE_INT32, size: 4)
    /// C's `uint32_t` and, as a rule, enumerations.
    public static let uint32 = CType(CBR_CODE_UINT32, size: 4)
    /// C's `int64_t`.
    public static let int64 = CType(CBR_CODE_INT64, size: 8)
    /// C's `uint64_t`.
    public static let uint64 = CType(CBR_CODE_UINT64, size: 8)
    /// C's `float`.
    public static let float = CType(CBR_CODE_FLOAT, size: 4)
    /// C's `double`.
    public static let double = CType(CBR_CODE_DOUBLE, size: 8)
    /// A pointer of any type that is never `NULL`.
    public static let pointer = CType(pointerThatIsNeverZero: true)
    /// A pointer of any type.
    public static let nullablePointer = CType(pointerThatIsNeverZero: false)
  }

  /// A type whose values a C function takes or returns as they are.
  ///
  /// All types that can be passed conform. One of the program's own may, such as
  /// a structure of one number as that number: its values are to have the bits
  /// of that type's. An enumeration of Swift's has not: wrap its raw value.
  public protocol CValue: SendableMetatype {
    /// What it is in C.
    static var typeInC: CType { get }
  }

  /// A pointer, which as an optional may be `NULL` in C.
  public protocol CPointer: CValue {}

  extension CPointer {
    /// A pointer that is never `NULL`.
    public static var typeInC: CType { .pointer }
  }

  extension Bool: CValue {
    /// C's `bool`.
    public static var typeInC: CType { .bool }
  }
  extension Int8: CValue {
    /// C's `int8_t`.
    public static var typeInC: CType { .int8 }
  }
  extension UInt8: CValue {
    /// C's `uint8_t`.
    public static var typeInC: CType { .uint8 }
  }
  extension Int16: CValue {
    /// C's `int16_t`.
    public static var typeInC: CType { .int16 }
  }
  extension UInt16: CValue {
    /// C's `uint16_t`.
    public static var typeInC: CType { .uint16 }
  }
  extension Int32: CValue {
    /// C's `int32_t`, and `int`.
    public static var typeInC: CType { .int32 }
  }
  extension UInt32: CValue {
    /// C's `uint32_t`.
    public static var typeInC: CType { .uint32 }
  }
  extension Int64: CValue {
    /// C's `int64_t`.
    public static var typeInC: CType { .int64 }
  }
  extension UInt64: CValue {
    /// C's `uint64_t`.
    public static var typeInC: CType { .uint64 }
  }
  extension Int: CValue {
    /// C's `ptrdiff_t`, and `long` on Linux.
    public static var typeInC: CType {
      MemoryLayout<Int>.size == 8 ? .int64 : .int32
    }
  }
  extension UInt: CValue {
    /// C's `size_t`, and `unsigned long` on Linux.
    public static var typeInC: CType {
      MemoryLayout<UInt>.size == 8 ? .uint64 : .uint32
    }
  }
  extension Float: CValue {
    /// C's `float`.
    public static var typeInC: CType { .float }
  }
  extension Double: CValue {
    /// C's `double`.
    public static var typeInC: CType { .double }
  }
  extension UnsafePointer: CPointer {}
  extension UnsafeMutablePointer: CPointer {}
  extension UnsafeRawPointer: CPointer {}
  extension UnsafeMutableRawPointer: CPointer {}
  extension OpaquePointer: CPointer {}
  extension Optional: CValue where Wrapped: CPointer {
    /// A pointer, which may be `NULL`.
    public static var typeInC: CType { .nullablePointer }
  }
#endif
