// SPDX-License-Identifier: Apache-2.0
//
// How a closure that is called by a plain C function stands in the engine: its
// context is a retained `ThunkBox`, its function is `ThunkBox.function`, under a
// tag that nobody else has. A thunk calls that function with a list of where the
// arguments are, and with where the result goes (`cbr_listed_function`).

#if !hasFeature(Embedded)
  import CPlatform

  /// A closure of types that C knows, called through addresses.
  @usableFromInline
  final class ThunkBox: Sendable {
    /// Where the arguments are.
    @usableFromInline
    typealias Arguments = UnsafeMutablePointer<UnsafeMutableRawPointer?>
    @usableFromInline
    typealias Body =
      @Sendable (Arguments?, UnsafeMutableRawPointer?, _ isGood: Bool) -> Void

    private let body: Body
    /// Arguments that must not be NULL.
    private let neverZero: [Int]

    init(_ signature: ThunkSignature, _ body: @escaping Body) {
      neverZero = signature.arguments.indices.filter {
        signature.arguments[$0].isNeverZero
      }
      self.body = body
    }

    static var typeTag: UInt64 { metadataAddress(of: ThunkBox.self) }

    private func call(
      _ arguments: Arguments?, _ result: UnsafeMutableRawPointer?
    ) {
      let isGood = neverZero.allSatisfy { index in
        arguments?[index]?.loadUnaligned(as: UInt.self) != 0
      }
      if !isGood {
        _ = Process.currentThread()?.fail(.invalid) { text in
          text.append("an argument of a thunk is NULL")
        }
      }
      body(arguments, result, isGood)
    }

    private static let function: cbr_listed_function = {
      context, arguments, result in
      guard let context else { return }
      Unmanaged<ThunkBox>.fromOpaque(context)._withUnsafeGuaranteedRef {
        $0.call(arguments, result)
      }
    }

    private static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<ThunkBox>.fromOpaque(context).release()
    }

    func register(
      in registry: Registry, _ traits: CallbackTraits, owner: UInt64
    ) throws(RegistryError) -> UInt64 {
      let registry = registry.handle
      return try traits.register(self, about: registry) { request, out in
        request.function = unsafeBitCast(
          Self.function, to: UnsafeRawPointer.self)
        request.destroy = Self.destroy
        request.owner = owner
        request.typeTag = Self.typeTag
        return Registering.register(in: registry, request, out: &out)
      }
    }
  }

  /// Reads arguments one after the other.
  @usableFromInline
  struct ArgumentReader {
    private let arguments: ThunkBox.Arguments?
    private var index = 0

    @usableFromInline
    init(_ arguments: ThunkBox.Arguments?) { self.arguments = arguments }

    @usableFromInline
    mutating func next<Value: CValue>(as type: Value.Type) -> Value {
      defer { index += 1 }
      // libffi gives as many addresses as the signature has arguments.
      return arguments.unsafelyUnwrapped[index].unsafelyUnwrapped
        .assumingMemoryBound(to: type).pointee
    }
  }
#endif
