// SPDX-License-Identifier: Apache-2.0
//
// Handlers that are called on a queue. Each message has a copy of the input.

#if !hasFeature(Embedded)
  extension Signal where Input: Sendable {
    /// Connects a handler that is called on the queue of a handle.
    @inlinable
    func add(
      _ traits: CallbackTraits, _ owner: Owner?, _ priority: Int32,
      onQueue queue: UInt64, _ body: @escaping @Sendable (Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let box = HandlerBox(copying: Input.self) { input in
        body(input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner?.handle ?? 0, priority: priority,
        queue: queue, bytes: MemoryLayout<Input>.size)
      return Registration(Token(registered: token))
    }

    /// Connects a handler of an object that is called on the queue of a handle.
    @inlinable
    func add<Object: AnyObject & Sendable>(
      _ traits: CallbackTraits, to object: Object, _ priority: Int32,
      onQueue queue: UInt64,
      _ body: @escaping @Sendable (Object, Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let owner = try ObjectOwner(of: object, in: registry)
      let box = HandlerBox(
        copying: Input.self, owner: owner.endsWithObject
      ) { [weak object] input in
        guard let object else { return HandlerBox.gone }
        return body(object, input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner.handle, priority: priority,
        queue: queue, bytes: MemoryLayout<Input>.size)
      withExtendedLifetime(object) {}
      return Registration(Token(registered: token))
    }
  }
#endif
