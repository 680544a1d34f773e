// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    /// Something that is live.
    public struct Item: Sendable {
      /// What kinds of thing there are.
      public enum Kind: Sendable, Hashable {
        /// What everything belongs to; only of histories.
        case registry
        /// A registered callback.
        case token
        /// What callbacks belong to.
        case owner
        /// A hold on a callback, taken by C.
        case lease
        /// A delegate property, or a slot of a closure.
        case slot
        /// A list of callbacks that are called together.
        case signal
        /// A place where calls are delivered.
        case queue
        /// Work with one delegate and an end.
        case session
        /// A piece of a session's work.
        case task
        /// An answer that is waited for.
        case reply
        /// A plain C function that is bound to a token.
        case thunk
      }

      /// Its number.
      public let handle: UInt64
      /// What it is.
      public let kind: Kind
      /// The name that it was given.
      public let label: String
      /// The file where it was registered; empty when that is unknown.
      public let file: String
      /// The line there; 0 when it is unknown.
      public let line: UInt
      /// The number of what it belongs to.
      public let owner: UInt64
      /// The time since its registration.
      public let age: Duration
      /// Calls that are running now.
      public let callsInFlight: UInt64
      /// Holds on it that C has taken.
      public let leases: UInt64
    }

    /// Lists what is live.
    ///
    /// What is registered or ended meanwhile may be left out.
    ///
    /// - Throws: `closed`, `forked`.
    public func live() throws(RegistryError) -> [Item] {
      endDeadObjects()
      return try items(of: handle) { handle, list in
        Looking.eachLive(in: handle, visit: Self.visit, context: list)
      }
    }

    /// Lists what would be reported as a leak if the registry were closed now:
    /// callbacks, and holds on them.
    ///
    /// - Throws: `closed`, `forked`.
    public func leaks() throws(RegistryError) -> [Item] {
      try live().filter { $0.kind != .owner }
    }

    /// Lists what ending an owner would end: itself, and all that belongs to it.
    ///
    /// - Parameter owner: Of this registry.
    /// - Returns: What is live of it.
    /// - Throws: `foreign`, `stale`, `closed`, `forked`.
    public func impact(of owner: Owner) throws(RegistryError) -> [Item] {
      try impact(ofHandle: owner.handle)
    }

    /// Lists what ending a callback would end: the callback, with the calls
    /// that are running.
    ///
    /// - Parameter token: Of this registry.
    /// - Returns: One item.
    /// - Throws: `foreign`, `stale`, `closed`, `forked`.
    public func impact<Input, Output>(
      of token: Token<Input, Output>
    ) throws(RegistryError) -> [Item] {
      try impact(ofHandle: token.handle)
    }

    /// Lists what ending a signal would end: itself, and all its connections.
    ///
    /// - Parameter signal: Of this registry.
    /// - Returns: What is live of it.
    /// - Throws: `foreign`, `stale`, `closed`, `forked`.
    public func impact<Input>(
      of signal: Signal<Input>
    ) throws(RegistryError) -> [Item] {
      try impact(ofHandle: signal.handle)
    }

    /// Lists the owner that stands for an object, and all that has been
    /// registered to the object.
    ///
    /// - Parameter object: Alive.
    /// - Returns: What is live of it; nothing when the object has none.
    /// - Throws: `closed`, `forked`.
    @_disfavoredOverload
    public func impact(
      of object: any AnyObject & Sendable
    ) throws(RegistryError) -> [Item] {
      // Disfavored: a signal, which is an object too, is asked for its handle.
      if let object = object as? any CallbackOwner {
        return try impact(of: object.callbacks)
      }
      guard Liveness.isLive(handle) else {
        throw RegistryError(Audit.level(of: handle).status, about: handle)
      }
      guard let owner = objects.find(object) else { return [] }
      return try impact(ofHandle: owner)
    }

    private func impact(
      ofHandle handle: UInt64
    ) throws(RegistryError) -> [Item] {
      let registry = Table.registry(of: handle)
      if registry != Handle.none, registry != self.handle {
        throw RegistryError(.foreign, about: handle)
      }
      return try items(of: handle) { handle, list in
        Looking.impact(of: handle, visit: Self.visit, context: list)
      }
    }

    private func items(
      of handle: UInt64,
      _ look: (UInt64, UnsafeMutableRawPointer) -> Status
    ) throws(RegistryError) -> [Item] {
      var list: [Item] = []
      let status = withUnsafeMutablePointer(to: &list) { list in
        look(handle, UnsafeMutableRawPointer(list))
      }
      try RegistryError.check(status, about: handle)
      return list
    }

    private static let visit: Visitor = { list, item in
      guard let list, let item else { return 0 }
      let found = item.assumingMemoryBound(
        to: CallbackRegistry.Item.self
      ).pointee
      if let item = Item(found) {
        list.assumingMemoryBound(to: [Item].self).pointee.append(item)
      }
      return 0
    }
  }

  extension Registry.Item {
    fileprivate init?(_ item: Item) {
      let found = HandleKind(rawValue: UInt8(truncatingIfNeeded: item.kind))
      guard let kind = Kind(found), kind != .registry else { return nil }
      self.kind = kind
      handle = item.handle
      label = item.label.map { String(cString: $0) } ?? ""
      file = item.file.map { String(cString: $0) } ?? ""
      line = UInt(item.line)
      owner = item.owner
      age = .nanoseconds(Int64(clamping: item.ageNanoseconds))
      callsInFlight = item.callsInFlight
      leases = item.leases
    }
  }

  extension Registry.Item.Kind {
    /// Nil for what is never given out.
    init?(_ kind: HandleKind?) {
      switch kind {
      case .registry: self = .registry
      case .token: self = .token
      case .owner: self = .owner
      case .lease: self = .lease
      case .slot: self = .slot
      case .signal: self = .signal
      case .queue: self = .queue
      case .session: self = .session
      case .task: self = .task
      case .reply: self = .reply
      case .thunk: self = .thunk
      case .list, nil: return nil
      }
    }
  }

  extension Registry.Item: CustomStringConvertible {
    /// One line, such as `token 0x… "progress" at Files/Load.swift:12`.
    public var description: String {
      let name = "\(kind) \(hexadecimal(handle)) \"\(label)\""
      return line == 0 ? name : "\(name) at \(file):\(line)"
    }
  }
#endif
