// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  import CPlatform

  /// The types of a thunk.
  @usableFromInline
  struct ThunkSignature: Sendable {
    let arguments: [CType]
    /// Nil: void.
    let result: CType?
    /// As Swift writes the type of the function.
    let functionType: String
    /// The first part that is not as large as it says: 0 is the result.
    private let wrongPart: Int?

    @usableFromInline
    init<each Argument: CValue, Result>(
      _ arguments: repeat (each Argument).Type, result: Result.Type,
      resultInC: CType?
    ) {
      var types: [CType] = []
      var names: [String] = []
      var wrong =
        MemoryLayout<Result>.size == resultInC?.size ?? 0 ? nil : 0
      for argument in repeat each arguments {
        let size = Self.size(of: argument)
        types.append(argument.typeInC)
        names.append(String(reflecting: argument))
        if size != argument.typeInC.size { wrong = wrong ?? types.count }
      }
      self.arguments = types
      self.result = resultInC
      wrongPart = wrong
      functionType =
        "(\(names.joined(separator: ", "))) -> "
        + String(reflecting: result)
    }

    private static func size<Value>(of type: Value.Type) -> Int {
      MemoryLayout<Value>.size
    }

    /// Says which types are not what they say they are in C.
    func check() throws(RegistryError) {
      guard let wrongPart else { return }
      _ = Process.currentThread()?.fail(.invalid) { text in
        if wrongPart == 0 {
          text.append("the result")
        } else {
          text.append("argument ")
          text.append(UInt64(wrongPart))
        }
        text.append(" has not the size of its CType")
      }
      throw RegistryError(.invalid)
    }

    /// Makes a thunk of a token.
    func makeThunk(
      _ token: UInt64, in registry: UInt64, _ traits: CallbackTraits,
      otherwise: UnsafeRawPointer?
    ) throws(RegistryError) -> UInt64 {
      let types = arguments.map { $0.description }
      var made = Handle.none
      let status = types.withUnsafeBytes { types in
        withText(traits.label, "label") { label in
          var request = SignatureRequest(
            result: result?.description ?? .void,
            arguments: types.baseAddress, count: UInt32(arguments.count),
            context: ContextPlace.none, otherwise: otherwise, label: label,
            typeTag: ThunkBox.typeTag, line: UInt32(clamping: traits.line),
            file: traits.file.filePath)
          request.isListed = true
          return Thunks.create(
            in: registry, token: token, request, out: &made)
        }
      }
      try RegistryError.check(status, about: token)
      return made
    }
  }

  extension CType {
    fileprivate var description: TypeDescription {
      TypeDescription(kind: code, count: 0, fields: nil)
    }
  }

  extension TypeDescription {
    fileprivate static var void: TypeDescription {
      TypeDescription(
        kind: UInt32(CBR_CODE_VOID), count: 0, fields: nil)
    }
  }
#endif
