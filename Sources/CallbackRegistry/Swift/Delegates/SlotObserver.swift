// SPDX-License-Identifier: Apache-2.0
//
// How a closure that is told of a slot's clearing stands in the engine: its
// context is a retained `ObserverBox`, its function is a `SlotObserver`.

#if !hasFeature(Embedded)
  final class ObserverBox: Sendable {
    private let body: @Sendable () -> Void

    private init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    private static let function: SlotObserver = { context, _, _ in
      guard let context else { return }
      Unmanaged<ObserverBox>.fromOpaque(context)._withUnsafeGuaranteedRef {
        $0.body()
      }
    }

    private static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<ObserverBox>.fromOpaque(context).release()
    }

    static func register(
      in registry: Registry, _ traits: CallbackTraits,
      _ body: @escaping @Sendable () -> Void
    ) throws(RegistryError) -> UInt64 {
      let registry = registry.handle
      return try traits.register(ObserverBox(body), about: registry) {
        request, out in
        request.function = unsafeBitCast(function, to: UnsafeRawPointer.self)
        request.destroy = destroy
        return Registering.register(in: registry, request, out: &out)
      }
    }
  }

  extension HeldToken {
    func onClear(
      _ label: String, _ body: (@Sendable () -> Void)?, _ file: StaticString,
      _ line: UInt
    ) throws(RegistryError) {
      guard let body else { return try observe(by: Handle.none) }
      let traits = CallbackTraits(label, [], nil, file, line)
      try observe(by: ObserverBox.register(in: registry, traits, body))
    }
  }
#endif
