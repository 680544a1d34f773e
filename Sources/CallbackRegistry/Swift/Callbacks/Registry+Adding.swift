// SPDX-License-Identifier: Apache-2.0
//
// What all ways of registering do. A closure is wrapped where its types are
// known, in the caller's module, so that a call needs no type at run time; the
// rest is the same for all types.

#if !hasFeature(Embedded)
  /// What is known of a callback besides its closure and its owner.
  @usableFromInline
  struct CallbackTraits {
    let label: String
    let options: CallbackOptions
    let level: Registry.Level?
    let file: StaticString
    let line: UInt

    @usableFromInline
    init(
      _ label: String, _ options: CallbackOptions, _ level: Registry.Level?,
      _ file: StaticString, _ line: UInt
    ) {
      self.label = label
      self.options = options
      self.level = level
      self.file = file
      self.line = line
    }
  }

  extension Registry {
    @inlinable
    func add<each Input, Output>(
      _ traits: CallbackTraits, _ owner: Owner?,
      _ body: @escaping @Sendable (repeat each Input) -> Output
    ) throws(RegistryError) -> Registration<(repeat each Input), Output> {
      typealias Inputs = (repeat each Input)
      let box = ClosureBox(
        inputSize: MemoryLayout<Inputs>.size,
        outputSize: MemoryLayout<Output>.size
      ) { input, output in
        let input = input.assumingMemoryBound(to: Inputs.self).pointee
        output.initializeMemory(
          as: Output.self, to: body(repeat each input))
        return true
      }
      let handle = try add(
        box, traits, owner: owner?.handle ?? 0,
        tag: Token<Inputs, Output>.typeTag)
      return Registration(Token(registered: handle))
    }

    @inlinable
    func add<Object: AnyObject & Sendable, each Input, Output>(
      _ traits: CallbackTraits, to object: Object,
      _ body: @escaping @Sendable (Object, repeat each Input) -> Output
    ) throws(RegistryError) -> Registration<(repeat each Input), Output> {
      typealias Inputs = (repeat each Input)
      let owner = try ObjectOwner(of: object, in: self)
      let box = ClosureBox(
        inputSize: MemoryLayout<Inputs>.size,
        outputSize: MemoryLayout<Output>.size, owner: owner.endsWithObject
      ) { [weak object] input, output in
        guard let object else { return false }
        let input = input.assumingMemoryBound(to: Inputs.self).pointee
        output.initializeMemory(
          as: Output.self, to: body(object, repeat each input))
        return true
      }
      let handle = try add(
        box, traits, owner: owner.handle, tag: Token<Inputs, Output>.typeTag)
      withExtendedLifetime(object) {}
      return Registration(Token(registered: handle))
    }

    @usableFromInline
    func add(
      _ box: ClosureBox, _ traits: CallbackTraits, owner: UInt64, tag: UInt64
    ) throws(RegistryError) -> UInt64 {
      let registry = handle
      let token = try traits.register(box, about: registry) { request, out in
        request.function = box.address
        request.destroy = ClosureBox.destroy
        request.owner = owner
        request.typeTag = tag
        return Registering.register(in: registry, request, out: &out)
      }
      box.token.store(token, ordering: .relaxed)
      return token
    }
  }

  extension CallbackTraits {
    /// Registers a box, which becomes the context.
    ///
    /// `body` says the rest of the request, and registers.
    func register(
      _ box: some AnyObject, about handle: UInt64,
      _ body: (inout RegistrationRequest, inout UInt64) -> Status
    ) throws(RegistryError) -> UInt64 {
      var request = RegistrationRequest()
      let context = Unmanaged.passRetained(box)
      request.context = context.toOpaque()
      request.flags = options.rawValue
      request.level = level?.number ?? 0
      request.line = UInt32(clamping: line)
      request.file = file.filePath
      var token = Handle.none
      let status = withText(label, "label") { label in
        request.label = label
        return body(&request, &token)
      }
      guard status == .ok else {
        let error = RegistryError(status, about: handle)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      return token
    }
  }

  /// What stands for an object in the engine.
  @usableFromInline
  struct ObjectOwner {
    @usableFromInline let handle: UInt64
    /// What a call that finds the object dead is to end: nothing when an
    /// `Owner` does that.
    @usableFromInline let endsWithObject: UInt64

    @usableFromInline
    init(
      of object: any AnyObject & Sendable, in registry: Registry
    ) throws(RegistryError) {
      // A weak reference is nil from the moment that the deinit begins.
      weak let promoted = object
      guard promoted != nil else {
        throw RegistryError(refusing: .dying, "the object's deinit has begun")
      }
      if let owner = object as? Owner {
        handle = owner.handle
        endsWithObject = Handle.none
      } else if let object = object as? any CallbackOwner {
        handle = object.callbacks.handle
        endsWithObject = Handle.none
      } else {
        handle = try registry.owner(of: object)
        endsWithObject = handle
      }
    }
  }
#endif
