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
      var request = RegistrationRequest()
      request.function = box.address
      let context = Unmanaged.passRetained(box)
      request.context = context.toOpaque()
      request.destroy = ClosureBox.destroy
      request.owner = owner
      request.typeTag = tag
      request.flags = traits.options.rawValue
      request.level = traits.level?.number ?? 0
      request.line = UInt32(clamping: traits.line)
      request.file = traits.file.filePath
      var token = Handle.none
      let status = withText(traits.label, "label") { label in
        request.label = label
        return Registering.register(in: handle, request, out: &token)
      }
      guard status == .ok else {
        let error = RegistryError(status, about: handle)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      box.token.store(token, ordering: .relaxed)
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
