// SPDX-License-Identifier: Apache-2.0
//
// An object that was given as the value of a protocol, without holding it. A
// cast from the object back to the protocol takes longer than a call should;
// hence the bits of the value are kept as well. They name the object and how it
// conforms, and are good for as long as the object is alive: they are read when
// a weak reference has said that it is, and holds it.

#if !hasFeature(Embedded)
  // Unchecked: all but the weak reference is written once, and that may be read
  // by several threads at once; an Interface is Sendable.
  @usableFromInline
  final class WeakReference<Interface: Sendable>: @unchecked Sendable {
    @usableFromInline weak let object: (any AnyObject & Sendable)?
    /// Never deinitialized: the bits hold nothing.
    @usableFromInline let bits: UnsafeMutablePointer<Interface>
    /// What stands for the object in the engine.
    @usableFromInline let owner: UInt64
    /// As that of `ObjectOwner`.
    @usableFromInline let endsWithObject: UInt64

    @usableFromInline
    init(
      to value: Interface, in registry: Registry
    ) throws(RegistryError) {
      guard type(of: value as Any) is AnyObject.Type else {
        throw RegistryError(
          refusing: .invalid, "the implementation is not an object")
      }
      // What is Sendable as a value is so as the object that it is.
      let object = unsafeBitCast(
        value as AnyObject, to: (any AnyObject & Sendable).self)
      let owner = try ObjectOwner(of: object, in: registry)
      self.object = object
      self.owner = owner.handle
      endsWithObject = owner.endsWithObject
      bits = .allocate(capacity: 1)
      withUnsafeBytes(of: value) { value in
        guard let value = value.baseAddress else { return }
        UnsafeMutableRawPointer(bits).copyMemory(
          from: value, byteCount: MemoryLayout<Interface>.size)
      }
    }

    deinit { bits.deallocate() }

    /// The object, held by who gets it; nil when its deinit has begun.
    @inlinable var promoted: Interface? {
      guard let object else { return nil }
      return withExtendedLifetime(object) { bits.pointee }
    }
  }
#endif
