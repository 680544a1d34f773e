// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A type as the caller describes it.
///
/// The layout is that of `cbr_type`.
package struct TypeDescription {
  package var kind: UInt32
  package var count: UInt32
  package var fields: UnsafeRawPointer?

  package init(kind: UInt32, count: UInt32, fields: UnsafeRawPointer?) {
    self.kind = kind
    self.count = count
    self.fields = fields
  }

  fileprivate func field(_ index: UInt32) -> TypeDescription? {
    fields?.load(
      fromByteOffset: Int(index) * MemoryLayout<TypeDescription>.stride,
      as: TypeDescription.self)
  }
}

/// What a thunk is to look like to who calls it.
///
/// Pointers are borrowed for the call.
package struct SignatureRequest {
  package var result: TypeDescription
  package var arguments: UnsafeRawPointer?
  package var count: UInt32
  /// Where the context goes among the function's arguments, or a
  /// `ContextPlace`.
  package var context: Int32
  package var otherwise: UnsafeRawPointer?
  package var label: UnsafePointer<CChar>?
  package var typeTag: UInt64
  package var line: UInt32
  package var file: UnsafePointer<CChar>?
  /// The function is called with the context, the list of where the arguments
  /// are, and where the result goes; `context` is not asked for then.
  package var isListed = false

  package init(
    result: TypeDescription, arguments: UnsafeRawPointer?, count: UInt32,
    context: Int32, otherwise: UnsafeRawPointer?,
    label: UnsafePointer<CChar>?, typeTag: UInt64, line: UInt32,
    file: UnsafePointer<CChar>?
  ) {
    self.result = result
    self.arguments = arguments
    self.count = count
    self.context = context
    self.otherwise = otherwise
    self.label = label
    self.typeTag = typeTag
    self.line = line
    self.file = file
  }
}

/// The values are those of `CBR_CONTEXT_...`.
package enum ContextPlace {
  package static let first: Int32 = 0
  package static let last: Int32 = -1
  package static let none: Int32 = -2
}

/// The kinds of `cbr_type` that are known and cannot be passed; the others are
/// the codes of `CPlatform`.
package enum RefusedType {
  package static let longDouble: UInt32 = 32
  package static let complex: UInt32 = 33
  package static let variadic: UInt32 = 34
}

/// A signature that has been found to be right, as a list of codes.
struct SignatureCodes {
  static let limit = 256
  static let nesting = 8

  let bytes: UnsafeMutablePointer<UInt8>
  private(set) var count = 0
  let context: Int32

  /// Reads a description; throws with a sentence about what is wrong with it.
  ///
  /// `bytes` has room for `limit` codes.
  init(
    _ what: SignatureRequest, bytes: UnsafeMutablePointer<UInt8>,
    thread: ThreadPointer
  ) throws(Status) {
    self.bytes = bytes
    let limit = UInt32(CBR_THUNK_ARGUMENTS)
    if what.count > limit {
      throw thread.unsupported { text in
        text.append("argument ")
        text.append(limit + 1)
        text.append(" is one too many")
      }
    }
    if what.count > 0, what.arguments == nil {
      throw thread.invalid("arguments is NULL and count is not 0")
    }
    switch what.context {
    case _ where what.isListed: context = Int32(CBR_CONTEXT_LISTED)
    case ContextPlace.none: context = -1
    case ContextPlace.last: context = Int32(what.count)
    case 0...Int32(what.count): context = what.context
    default:
      throw thread.invalid { text in
        text.append("context is neither a place of its own nor one of 0 to ")
        text.append(what.count)
      }
    }
    let reader = SignatureReader(thread: thread)
    try add(what.result, SignaturePart(), reader)
    for index in 0..<what.count {
      let arguments = TypeDescription(
        kind: UInt32(CBR_CODE_STRUCT), count: what.count,
        fields: what.arguments)
      guard let argument = arguments.field(index) else { continue }
      try add(argument, SignaturePart(argument: index + 1), reader)
    }
  }

  private mutating func add(
    _ type: TypeDescription, _ part: SignaturePart, _ reader: SignatureReader
  ) throws(Status) {
    try reader.check(type, part)
    let isStructure = type.kind == UInt32(CBR_CODE_STRUCT)
    // Room for as many codes as there are fields, at least.
    let needed = isStructure ? 2 + Int(type.count) : 1
    guard count + needed <= SignatureCodes.limit else {
      throw reader.unsupported(part, " has too many fields")
    }
    append(type.kind)
    guard isStructure else { return }
    append(type.count)
    for index in 0..<type.count {
      guard let field = type.field(index) else { continue }
      try add(field, part.field, reader)
    }
  }

  private mutating func append(_ code: UInt32) {
    bytes[count] = UInt8(truncatingIfNeeded: code)
    count += 1
  }
}

/// Which part of a signature something is said of.
private struct SignaturePart {
  /// 0: the result.
  var argument: UInt32 = 0
  var depth = 0

  var field: SignaturePart {
    SignaturePart(argument: argument, depth: depth + 1)
  }
}

private struct SignatureReader {
  let thread: ThreadPointer

  func check(
    _ type: TypeDescription, _ part: SignaturePart
  ) throws(Status) {
    switch type.kind {
    case UInt32(CBR_CODE_VOID):
      if part.argument != 0 || part.depth > 0 {
        throw invalid(part, " is void")
      }
    case UInt32(CBR_CODE_STRUCT):
      if type.count == 0 || type.fields == nil {
        throw invalid(part, " is a structure without fields")
      }
      if part.depth == SignatureCodes.nesting {
        throw unsupported(part, " is nested too deeply")
      }
    case RefusedType.longDouble:
      throw unsupported(part, " is a long double")
    case RefusedType.complex:
      throw unsupported(part, " is a complex number")
    case RefusedType.variadic:
      throw fail(.unsupported, part) { text in
        text.append(" is variadic; describe what is passed there")
      }
    default:
      if type.kind > UInt32(CBR_CODE_STRUCT) {
        throw fail(.invalid, part) { text in
          text.append(" is of kind ")
          text.append(type.kind)
          text.append(", which there is not")
        }
      }
    }
  }

  private func invalid(_ part: SignaturePart, _ what: StaticString) -> Status {
    fail(.invalid, part) { $0.append(what) }
  }

  func unsupported(_ part: SignaturePart, _ what: StaticString) -> Status {
    fail(.unsupported, part) { text in
      text.append(what)
      text.append("; pass a pointer to it")
    }
  }

  private func fail(
    _ status: Status, _ part: SignaturePart, _ build: (inout Text) -> Void
  ) -> Status {
    let failed = thread.fail(status) { text in
      if part.depth > 0 { text.append("a field of ") }
      if part.argument == 0 {
        text.append("the result")
      } else {
        text.append("argument ")
        text.append(part.argument)
      }
      build(&text)
    }
    return thread.toThrow(failed)
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Something is not possible here.
  ///
  /// To be thrown.
  func unsupported(_ build: (inout Text) -> Void) -> Status {
    toThrow(fail(.unsupported, build))
  }
}
