// SPDX-License-Identifier: Apache-2.0
//
// Registering objects as implementations of Swift protocols.

#if !hasFeature(Embedded)
  extension Registry {
    /// Registers an object as the implementation of a protocol.
    ///
    /// The object is held weakly, and strongly while it is called; the
    /// registration ends as one to that object does.
    ///
    ///     protocol DownloadDelegate: AnyObject, Sendable {
    ///       func didReceive(_ bytes: [UInt8])
    ///       func shouldGoOn() -> Bool
    ///     }
    ///     extension DownloadDelegate {  // an optional method
    ///       func shouldGoOn() -> Bool { true }
    ///     }
    ///     let delegate = try registry.register(
    ///       "delegate", as: (any DownloadDelegate).self, window)
    ///     try delegate.call { $0.didReceive(bytes) }
    ///
    /// Optional methods are Swift's own: a method that the protocol requires and
    /// that an extension of it implements need not be implemented by the object,
    /// and what the extension returns is the method's default. There is no error
    /// `unimplemented` for them.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - interface: The protocol, as `(any P).self`, or a class.
    ///   - object: What is called. A structure is refused: nothing would hold it.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    /// - Returns: What ends the registration when it goes out of scope.
    /// - Throws: `invalid` also when it is no object; else as for a closure.
    @inlinable
    public func register<Interface: Sendable>(
      _ label: String, as interface: Interface.Type, _ object: Interface,
      options: CallbackOptions = [], level: Level? = nil,
      file: StaticString = #fileID, line: UInt = #line
    ) throws(RegistryError) -> InterfaceRegistration<Interface> {
      let traits = CallbackTraits(label, options, level, file, line)
      let reference = try WeakReference(to: object, in: self)
      let handle = try addImplementation(traits, reference, as: interface)
      withExtendedLifetime(object) {}
      return InterfaceRegistration(InterfaceToken(registered: handle))
    }

    @inlinable
    func addImplementation<Interface: Sendable>(
      _ traits: CallbackTraits, _ reference: WeakReference<Interface>,
      as interface: Interface.Type
    ) throws(RegistryError) -> UInt64 {
      typealias Visit = (Interface) -> Void
      let box = ClosureBox(
        inputSize: MemoryLayout<Visit>.size, outputSize: 0,
        owner: reference.endsWithObject
      ) { visit, _ in
        guard let object = reference.promoted else { return false }
        visit.assumingMemoryBound(to: Visit.self).pointee(object)
        return true
      }
      return try add(
        box, traits, owner: reference.owner,
        tag: InterfaceToken<Interface>.typeTag)
    }
  }
#endif
