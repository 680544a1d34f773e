// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A delegate property that holds its delegate weakly and calls it safely.
  ///
  ///     @MainActor final class Downloader {
  ///       @Delegate("downloader.delegate", in: registry)
  ///       var delegate: (any DownloadDelegate)?
  ///       func receive(_ bytes: [UInt8]) throws(RegistryError) {
  ///         try $delegate.call { $0.didReceive(bytes) }
  ///       }
  ///     }
  ///
  /// Assigning replaces the former delegate; nil clears the property. Reading it
  /// gives a strong reference, or nil once the delegate's `deinit` has begun.
  /// Calls go through `$delegate`, which is a ``DelegateSlot``.
  ///
  /// Swift lets no class that is `Sendable` by itself have a wrapped property;
  /// such a class has a ``DelegateSlot`` as a constant.
  @propertyWrapper
  public struct Delegate<Wrapped: Sendable>: Sendable {
    /// The slot, by which the delegate is called.
    public let projectedValue: DelegateSlot<Wrapped>

    /// Makes the property, in a registry.
    ///
    /// It does not throw: what went wrong is ``DelegateSlot/failure``, and is
    /// thrown by each call.
    ///
    /// - Parameters:
    ///   - wrappedValue: The first delegate.
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Where its delegates are registered.
    public init(
      wrappedValue: Wrapped? = nil, _ label: String, in registry: Registry
    ) {
      projectedValue = DelegateSlot(
        trying: label, in: registry, owner: Handle.none)
      if let wrappedValue { projectedValue.value = wrappedValue }
    }

    /// Makes the property, in an owner, which ends it.
    ///
    /// - Parameters:
    ///   - wrappedValue: The first delegate.
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: What it ends with. It is not held.
    public init(
      wrappedValue: Wrapped? = nil, _ label: String, in owner: Owner
    ) {
      projectedValue = DelegateSlot(
        trying: label, in: owner.registry, owner: owner.handle)
      if let wrappedValue { projectedValue.value = wrappedValue }
    }

    /// The delegate: see ``DelegateSlot/value``.
    public var wrappedValue: Wrapped? {
      @inlinable get { projectedValue.value }
      @inlinable nonmutating set { projectedValue.value = newValue }
    }
  }
#endif
