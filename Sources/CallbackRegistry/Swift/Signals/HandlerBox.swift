// SPDX-License-Identifier: Apache-2.0
//
// How a handler of Swift's stands in the engine: like other closures
// (ClosureBox.swift), but with the function of a signal's handler,
//
//     cbr_disposition function(void *context, void *argument);
//
// where `argument` points at an Input, which is read. So C may connect such a
// function to a signal of Swift's, and emit one with such an argument.
//
// One that is called on a queue gets an `InputBox` instead: when the signal is
// emitted, its box copies the Input into one, which is the message's payload.

#if !hasFeature(Embedded)
  import Synchronization

  /// A handler of any input, called through an address.
  @usableFromInline
  final class HandlerBox: Sendable {
    /// Answers a disposition; `gone`, and has done nothing, when the object that
    /// the handler is registered to has died.
    @usableFromInline
    typealias Body = @Sendable (UnsafeRawPointer) -> Int32

    /// The answer of one whose object has died.
    @usableFromInline static var gone: Int32 { Disposition.gone }

    private let body: Body
    /// Whether the address has to be there.
    private let readsInput: Bool
    /// What ends with the object, besides the token; none: nothing else.
    private let owner: UInt64
    /// For a handler that is called on a queue.
    private let copy: InputBox.Copy?
    /// As that of `ClosureBox`.
    let token = Atomic<UInt64>(Handle.none)

    @usableFromInline
    init(
      inputSize: Int, owner: UInt64 = 0, copy: InputBox.Copy? = nil,
      _ body: @escaping Body
    ) {
      readsInput = inputSize > 0
      self.owner = owner
      self.copy = copy
      self.body = body
    }

    /// Makes one that is called on a queue.
    @inlinable
    convenience init<Input: Sendable>(
      copying input: Input.Type, owner: UInt64 = 0, _ body: @escaping Body
    ) {
      self.init(
        inputSize: MemoryLayout<Input>.size, owner: owner,
        copy: { InputBox($0.assumingMemoryBound(to: Input.self).pointee) },
        body)
    }

    private func call(_ input: UnsafeRawPointer) -> Int32 {
      let answer = body(input)
      if answer == Disposition.gone { endWithObject(token, owner) }
      return answer
    }

    /// Where the input is; nil: C has emitted a signal without one.
    private func address(
      of argument: UnsafeMutableRawPointer?
    ) -> UnsafeRawPointer? {
      if let argument { return UnsafeRawPointer(argument) }
      guard !readsInput else { return nil }
      return UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    private static func with<Answer>(
      _ context: UnsafeMutableRawPointer?, otherwise: Answer,
      _ body: (HandlerBox) -> Answer
    ) -> Answer {
      guard let context else { return otherwise }
      return Unmanaged<HandlerBox>.fromOpaque(context)
        ._withUnsafeGuaranteedRef(body)
    }

    private static let function: Handler = { context, argument in
      with(context, otherwise: Disposition.gone) { box in
        guard let input = box.address(of: argument) else {
          return Disposition.gone
        }
        return box.call(input)
      }
    }

    private static let queuedFunction: Handler = { context, argument in
      with(context, otherwise: Disposition.gone) { box in
        guard let argument else { return Disposition.gone }
        return Unmanaged<InputBox>.fromOpaque(argument)
          ._withUnsafeGuaranteedRef { box.call($0.address) }
      }
    }

    private static let copyInput: CopyForHandler = { context, argument in
      with(context, otherwise: nil) { box in
        guard let input = box.address(of: argument), let copy = box.copy else {
          return nil
        }
        return Unmanaged.passRetained(copy(input)).toOpaque()
      }
    }

    private static let freeInput: FreePayload = { payload in
      guard let payload else { return }
      Unmanaged<InputBox>.fromOpaque(payload).release()
    }

    private static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<HandlerBox>.fromOpaque(context).release()
    }

    /// Connects the handler to a signal, on a queue if that is not none.
    @usableFromInline
    func connect(
      to signal: UInt64, _ traits: CallbackTraits, owner: UInt64,
      priority: Int32, queue: UInt64 = 0, bytes: Int = 0
    ) throws(RegistryError) -> UInt64 {
      var delivery = DeliveryPlace()
      if queue != Handle.none {
        delivery.queue = queue
        delivery.copyForHandler = Self.copyInput
        delivery.free = Self.freeInput
        delivery.bytes = UInt64(bytes)
      }
      let function = queue == Handle.none ? Self.function : Self.queuedFunction
      let handle = try traits.register(self, about: signal) { request, out in
        request.function = unsafeBitCast(function, to: UnsafeRawPointer.self)
        request.destroy = Self.destroy
        request.owner = owner
        return Signals.connect(
          request, to: signal, priority: priority, delivery: delivery,
          out: &out)
      }
      token.store(handle, ordering: .relaxed)
      return handle
    }
  }

  /// A copy of an input on its way to another thread.
  ///
  /// It is made for types that are `Sendable` only.
  @usableFromInline
  final class InputBox {
    @usableFromInline
    typealias Copy = @Sendable (UnsafeRawPointer) -> InputBox

    let address: UnsafeMutableRawPointer
    private let free: (UnsafeMutableRawPointer) -> Void

    @usableFromInline
    init<Input: Sendable>(_ input: Input) {
      let copy = UnsafeMutablePointer<Input>.allocate(capacity: 1)
      copy.initialize(to: input)
      address = UnsafeMutableRawPointer(copy)
      free = { address in
        let copy = address.assumingMemoryBound(to: Input.self)
        copy.deinitialize(count: 1)
        copy.deallocate()
      }
    }

    deinit { free(address) }
  }
#endif
