// SPDX-License-Identifier: Apache-2.0
//
// How a session's delegate stands in the engine: a token with the interface
// that the session asks for (Delivery/Sessions.swift), whose context is a
// retained `DelegateBox`. The token is the session's alone and ends with it,
// after the last event or when nobody can be told any more; so the delegate is
// released then.

#if !hasFeature(Embedded)
  /// A session's delegate, called through the functions of the interface.
  final class DelegateBox: Sendable {
    private let delegate: any SessionDelegate
    /// Kept until the last event, which is told there.
    let queue: CallQueue?

    /// Without a delegate there are streams of events.
    init(_ delegate: (any SessionDelegate)?, _ queue: CallQueue?) {
      self.delegate = delegate ?? EventStreams()
      self.queue = queue
    }

    var isStreaming: Bool { delegate is EventStreams }

    func register(
      _ traits: CallbackTraits, in registry: UInt64
    ) throws(RegistryError) -> UInt64 {
      var request = RegistrationRequest()
      let context = Unmanaged.passRetained(self)
      request.interface = Sessions.interface
      request.context = context.toOpaque()
      request.destroy = Self.destroy
      request.file = traits.file.filePath
      request.line = UInt32(clamping: traits.line)
      var token = Handle.none
      let status = withText(traits.label, "label") { label in
        request.label = label
        // Borrowed, and copied by the engine.
        return Self.methods.withUnsafeBufferPointer { methods in
          request.methods = methods.baseAddress
          return Registering.register(in: registry, request, out: &token)
        }
      }
      guard status == .ok else {
        let error = RegistryError(status, about: registry)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      return token
    }

    private static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<DelegateBox>.fromOpaque(context).release()
    }

    /// The call in flight keeps the box (G8).
    private static func tell(
      _ context: UnsafeMutableRawPointer?, of task: UInt64,
      _ body: (DelegateBox, SessionTask, Bool) -> Void
    ) {
      guard let context, let (task, isBegunHere) = SessionTask.known(task)
      else { return }
      Unmanaged<DelegateBox>.fromOpaque(context)._withUnsafeGuaranteedRef {
        body($0, task, isBegunHere)
      }
    }

    /// In the order of the interface.
    ///
    /// Handing over is for C.
    private static var methods: [UnsafeRawPointer?] {
      [
        unsafeBitCast(didReceiveResponse, to: UnsafeRawPointer.self),
        unsafeBitCast(didReceiveData, to: UnsafeRawPointer.self),
        unsafeBitCast(didComplete, to: UnsafeRawPointer.self),
        unsafeBitCast(didBecomeInvalid, to: UnsafeRawPointer.self),
        nil,
      ]
    }

    private static let didReceiveResponse:
      @convention(c) (
        UnsafeMutableRawPointer?, UInt64, UnsafeRawPointer?, Int, UInt64
      ) -> Void = { context, task, response, size, reply in
        let bytes = UnsafeRawBufferPointer(start: response, count: size)
        tell(context, of: task) { box, task, _ in
          box.delegate.task(
            task, didReceiveResponse: Array(bytes), reply: Reply(reply))
        }
      }

    private static let didReceiveData:
      @convention(c) (
        UnsafeMutableRawPointer?, UInt64, UnsafeRawPointer?, Int
      ) -> Void = { context, task, data, size in
        let bytes = UnsafeRawBufferPointer(start: data, count: size)
        tell(context, of: task) { box, task, isBegunHere in
          box.delegate.task(task, didReceiveData: Array(bytes))
          guard isBegunHere else { return }
          box.delegate.task(task, didProgress: task.receive(size))
        }
      }

    private static let didComplete:
      @convention(c) (UnsafeMutableRawPointer?, UInt64, Int32) -> Void = {
        context, task, code in
        tell(context, of: task) { box, task, _ in
          box.delegate.task(task, didComplete: task.end(code))
        }
      }

    private static let didBecomeInvalid:
      @convention(c) (UnsafeMutableRawPointer?, UInt64, UInt32) -> Void = {
        context, session, reason in
        guard let context else { return }
        let session = Session(known: session)
        Unmanaged<DelegateBox>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.delegate.session(
            session, didBecomeInvalid: EndReason(number: reason))
        }
      }
  }
#endif
