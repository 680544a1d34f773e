// SPDX-License-Identifier: Apache-2.0
//
// How a completion stands in the engine: its context is a retained
// `CompletionBox`, its function is `CompletionBox.completed`, its destroy
// releases the box. The engine calls the function once, whatever ends the
// completion (Delivery/Completions.swift), with what was sent: error 0 and the
// address of a value, an error of Swift's by its number, an error of C's; or
// with the default, when nothing ever was.

#if !hasFeature(Embedded)
  import Synchronization

  /// A completion's closure, which is told by addresses.
  final class CompletionBox: Sendable {
    typealias Sent = Result<UnsafeRawPointer, RegistryError>

    /// The error of who never hears.
    private static let nothing = Int32.min + 0x1000

    private let body: @Sendable (Sent) -> Void
    private let errors: PassedErrors
    private let isEmpty: Bool
    /// Stored when the completion has been made, which may have ended by then.
    private let handle = Atomic<UInt64>(Handle.none)

    init(
      _ errors: PassedErrors, isEmpty: Bool,
      _ body: @escaping @Sendable (Sent) -> Void
    ) {
      self.errors = errors
      self.isEmpty = isEmpty
      self.body = body
    }

    func register(
      _ traits: CallbackTraits, in registry: UInt64, owner: UInt64
    ) throws(RegistryError) -> UInt64 {
      var request = RegistrationRequest()
      let context = Unmanaged.passRetained(self)
      request.function = unsafeBitCast(
        Self.completed, to: UnsafeRawPointer.self)
      request.context = context.toOpaque()
      request.destroy = Self.destroy
      request.owner = owner
      request.file = traits.file.filePath
      request.line = UInt32(clamping: traits.line)
      var made = Handle.none
      let status = withText(traits.label, "label") { label in
        request.label = label
        return Completions.create(
          in: registry, request, defaultError: Self.nothing, out: &made)
      }
      guard status == .ok else {
        let error = RegistryError(status, about: registry)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      handle.store(made, ordering: .releasing)
      return made
    }

    private static let completed: Completed = { context, error, value in
      guard let context else { return }
      Unmanaged<CompletionBox>.fromOpaque(context)._withUnsafeGuaranteedRef {
        $0.body($0.sent(error, value ?? ($0.isEmpty ? context : nil)))
      }
    }

    private static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<CompletionBox>.fromOpaque(context).release()
    }

    /// Reads what was sent.
    private func sent(
      _ error: Int32, _ value: UnsafeMutableRawPointer?
    ) -> Sent {
      let handle = handle.load(ordering: .acquiring)
      if error == 0 {
        if let value { return .success(UnsafeRawPointer(value)) }
        return .failure(
          .invalid(Explanation("it was called without a value", about: handle)))
      }
      if let error = errors.take(error) {
        if let error = error as? RegistryError { return .failure(error) }
        return .failure(
          .thrown(
            error, Explanation("it was called with an error", about: handle)))
      }
      guard error == Self.nothing else {
        return .failure(
          .failed(
            status: error,
            Explanation("it was called with an error of C's", about: handle)))
      }
      return .failure(.ofUnanswered(handle))
    }
  }

  extension RegistryError {
    /// Nothing was ever sent to a completion: why it ended says what that is.
    fileprivate static func ofUnanswered(_ handle: UInt64) -> RegistryError {
      guard handle != Handle.none else {
        return .neverCalled(Explanation("it was never called", about: handle))
      }
      let detail = Table.knownDetail(at: Handle.index(of: handle))
      return switch detail.pointee.endReason.load(ordering: .relaxed) {
      case Reason.timedOut:
        .timedOut(Explanation("it was not called in time", about: handle))
      case Reason.cancelled:
        .cancelled(
          Explanation("who waited for it was cancelled", about: handle))
      default: .neverCalled(Explanation("it was never called", about: handle))
      }
    }
  }
#endif
