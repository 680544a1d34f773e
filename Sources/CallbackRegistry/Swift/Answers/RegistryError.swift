// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Why something could not be done.
  ///
  /// Each case says what it was about.
  public enum RegistryError: Error {
    /// An argument is wrong; the explanation names it.
    case invalid(Explanation)
    /// The callback, owner or object is dead.
    case stale(Explanation)
    /// The handle is of another kind.
    case wrongKind(Explanation)
    /// The callback has other types, or methods instead of a function.
    case wrongType(Explanation)
    /// The optional method is absent.
    case unimplemented(Explanation)
    /// The owner belongs to another registry.
    case foreign(Explanation)
    /// The owner's or the registry's end has begun.
    case dying(Explanation)
    /// The registry has been closed.
    case closed(Explanation)
    /// The slot holds nothing.
    case unset(Explanation)
    /// A bound is reached.
    case full(Explanation)
    /// The callback could be called once, and was.
    case consumed(Explanation)
    /// Waiting would close a ring of threads that wait for each other.
    case wouldDeadlock(Explanation)
    /// The time is over.
    case timedOut(Explanation)
    /// Calls are nested too deeply.
    case tooDeep(Explanation)
    /// The callback is bound to another thread.
    case wrongThread(Explanation)
    /// It was inherited through fork, and is the parent's.
    case forked(Explanation)
    /// There is no memory; nothing changed.
    case outOfMemory(Explanation)
    /// A limit of the library is reached; nothing changed.
    case limitReached(Explanation)
    /// The history cannot be opened or written.
    case history(Explanation)
    /// It is not possible here.
    case unsupported(Explanation)
    /// The task that waited for it was cancelled.
    case cancelled(Explanation)
    /// A completion came to its end, and was never called.
    case neverCalled(Explanation)
    /// A completion was called with an error of the program's own.
    case thrown(any Error, Explanation)
    /// A C function answered with an error of its own.
    case failed(status: Int32, Explanation)
  }

  extension RegistryError {
    /// What went wrong, and the life of what it was about.
    public var explanation: Explanation {
      switch self {
      case .invalid(let explanation), .stale(let explanation),
        .wrongKind(let explanation), .wrongType(let explanation),
        .unimplemented(let explanation), .foreign(let explanation),
        .dying(let explanation), .closed(let explanation),
        .unset(let explanation), .full(let explanation),
        .consumed(let explanation),
        .wouldDeadlock(let explanation), .timedOut(let explanation),
        .tooDeep(let explanation), .wrongThread(let explanation),
        .forked(let explanation), .outOfMemory(let explanation),
        .limitReached(let explanation), .history(let explanation),
        .unsupported(let explanation), .cancelled(let explanation),
        .neverCalled(let explanation), .thrown(_, let explanation),
        .failed(_, let explanation):
        explanation
      }
    }

    /// Reads the calling thread's last status.
    package init(_ status: Status, about handle: UInt64 = Handle.none) {
      let explanation = Explanation.last(status, about: handle)
      self =
        switch status {
        case .invalid: .invalid(explanation)
        case .stale: .stale(explanation)
        case .kind: .wrongKind(explanation)
        case .interface: .wrongType(explanation)
        case .unimplemented: .unimplemented(explanation)
        case .foreign: .foreign(explanation)
        case .dying: .dying(explanation)
        case .closed: .closed(explanation)
        case .empty: .unset(explanation)
        case .full: .full(explanation)
        case .consumed: .consumed(explanation)
        case .wouldDeadlock: .wouldDeadlock(explanation)
        case .timeout: .timedOut(explanation)
        case .depth: .tooDeep(explanation)
        case .thread: .wrongThread(explanation)
        case .forked: .forked(explanation)
        case .noMemory: .outOfMemory(explanation)
        case .limit: .limitReached(explanation)
        case .audit: .history(explanation)
        case .unsupported: .unsupported(explanation)
        case .ok, .pending, .deferred, .already, .stopped, .user:
          .failed(status: status.rawValue, explanation)
        }
    }

    /// The error for a raw status, which may be a C function's own.
    @usableFromInline
    static func last(_ status: Int32, about handle: UInt64) -> RegistryError {
      // What is no error of the library's is the function's own.
      if status < 0, let known = Status(rawValue: status) {
        return RegistryError(known, about: handle)
      }
      return .failed(
        status: status, Explanation.last(.user, about: handle))
    }

    /// The error for something that was found out here, in a sentence.
    init(
      refusing status: Status, _ sentence: StaticString
    ) {
      _ = Process.currentThread()?.fail(status) { $0.append(sentence) }
      self.init(status)
    }

    static func check(
      _ status: Status, about handle: UInt64 = Handle.none
    ) throws(RegistryError) {
      if status != .ok { throw RegistryError(status, about: handle) }
    }
  }

  extension RegistryError: CustomStringConvertible {
    /// The explanation in full.
    public var description: String { explanation.description }
  }
#endif
