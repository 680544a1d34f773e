// SPDX-License-Identifier: Apache-2.0
//
// How a Swift closure stands in the engine: its context is a retained
// `ClosureBox`, its function is `ClosureBox.function`, its destroy releases the
// box. The function has one C signature for all closures,
//
//     cbr_status function(void *context, const void *input, void *output);
//
// under a type tag that stands for the types behind the two addresses
// (Token.typeTag). `input` points at a value of the type Input, which is read;
// `output` points at room for a value of the type Output, which is initialised
// when the answer is CBR_OK. For Void nothing is read or written. C enters such
// a token by cbr_enter_typed, and a C function of this signature that was
// registered under the tag is called by a Swift token of that handle.

#if !hasFeature(Embedded)
  import Synchronization

  /// A closure of any type, called through addresses.
  @usableFromInline
  final class ClosureBox: Sendable {
    /// Answers false, and has done nothing, when the object that the closure
    /// is registered to has died.
    @usableFromInline
    typealias Body =
      @Sendable (UnsafeRawPointer, UnsafeMutableRawPointer) -> Bool

    typealias Function =
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeRawPointer?, UnsafeMutableRawPointer?
      ) -> Int32

    private let body: Body
    /// Whether the addresses have to be there.
    private let readsInput: Bool
    private let writesOutput: Bool
    /// What ends with the object, besides the token; none: nothing else.
    private let owner: UInt64
    private let isOnMain: Bool
    /// Stored when the box has been registered.
    ///
    /// The object, which is alive until then, is what orders its being read
    /// after that.
    let token = Atomic<UInt64>(Handle.none)

    @usableFromInline
    init(
      inputSize: Int, outputSize: Int, owner: UInt64 = 0,
      isOnMain: Bool = false, _ body: @escaping Body
    ) {
      readsInput = inputSize > 0
      writesOutput = outputSize > 0
      self.owner = owner
      self.isOnMain = isOnMain
      self.body = body
    }

    /// Calls the closure of the box that `context` is.
    static let function: Function = { context, input, output in
      guard let context else { return Status.invalid.rawValue }
      return Unmanaged<ClosureBox>.fromOpaque(context)
        ._withUnsafeGuaranteedRef { box in
          let anywhere = UnsafeRawPointer(context)
          guard let input = input ?? (box.readsInput ? nil : anywhere),
            let output = output ?? (box.writesOutput ? nil : context)
          else { return Status.invalid.rawValue }
          return box.call(input, output)
            ? Status.ok.rawValue : Status.stale.rawValue
        }
    }

    /// Calls it on the main actor, and refuses to elsewhere.
    private static let functionOnMain: Function = { context, input, output in
      guard MainPlace.isHere else { return Status.thread.rawValue }
      return function(context, input, output)
    }

    static var functionAddress: UnsafeRawPointer {
      unsafeBitCast(function, to: UnsafeRawPointer.self)
    }

    /// What it is registered with.
    var address: UnsafeRawPointer {
      isOnMain ? Self.addressOnMain : Self.functionAddress
    }

    static var addressOnMain: UnsafeRawPointer {
      unsafeBitCast(functionOnMain, to: UnsafeRawPointer.self)
    }

    /// False when the object has died: then all that was registered to it has
    /// ended, too.
    @inline(__always)
    func call(
      _ input: UnsafeRawPointer, _ output: UnsafeMutableRawPointer
    ) -> Bool {
      if body(input, output) { return true }
      endWithObject(token, owner)
      return false
    }

    static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<ClosureBox>.fromOpaque(context).release()
    }
  }

  /// Ends what was registered to an object that has died.
  ///
  /// The calling thread is inside the token, whose box outlives it so.
  @inline(never)
  func endWithObject(_ token: borrowing Atomic<UInt64>, _ owner: UInt64) {
    _ = Ending.end(
      token.load(ordering: .relaxed), reason: Reason.objectDied,
      waitingUntil: nil)
    guard owner != Handle.none else { return }
    _ = Ending.end(owner, reason: Reason.objectDied, waitingUntil: nil)
  }

  /// The part of a call that is the same for all types: calls a token's
  /// function if it is live, and answers with the raw status.
  ///
  /// After 0, `output` is initialised.
  @usableFromInline
  func performCall(
    _ token: UInt64, tag: UInt64, input: UnsafeRawPointer,
    output: UnsafeMutableRawPointer
  ) -> Int32 {
    // Unprotected: only the engine writes to this memory, within its bounds.
    _withUnprotectedUnsafeTemporaryAllocation(
      of: CallRecord.self, capacity: 1
    ) { room in
      let call = room.baseAddress.unsafelyUnwrapped
      let status = Entering.enter(token, tag: tag, call: call)
      guard status == Status.ok.rawValue else { return status }
      let function = call.pointee.function.unsafelyUnwrapped
      let context = call.pointee.context
      guard function == ClosureBox.functionAddress else {
        return call.perform(function, context, input, output)
      }
      // Most functions are closures: one jump less. The call in flight keeps
      // the box (G8), so it need not be retained.
      let isDone = Unmanaged<ClosureBox>.fromOpaque(context.unsafelyUnwrapped)
        ._withUnsafeGuaranteedRef { $0.call(input, output) }
      guard isDone else { return Leaving.decline(call, .stale).rawValue }
      return Leaving.leave(call)
    }
  }

  extension UnsafeMutablePointer where Pointee == CallRecord {
    /// Calls a function of C, whose type its tag has told (G10), and leaves.
    @inline(never)
    fileprivate func perform(
      _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?,
      _ input: UnsafeRawPointer, _ output: UnsafeMutableRawPointer
    ) -> Int32 {
      let token = pointee.token
      let answer = unsafeBitCast(function, to: ClosureBox.Function.self)(
        context, input, output)
      if answer == Status.thread.rawValue,
        function == ClosureBox.addressOnMain
      {
        // The closure has not run: that was no call.
        return Leaving.decline(self, .thread).rawValue
      }
      _ = Leaving.leave(self)
      guard answer != Status.ok.rawValue else { return answer }
      // What the program made up itself is remembered as such.
      let status = Status(rawValue: answer) ?? .user
      _ = ThreadPointer.current?.fail(status, about: token)
      return answer
    }
  }
#endif
