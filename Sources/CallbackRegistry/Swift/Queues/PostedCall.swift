// SPDX-License-Identifier: Apache-2.0
//
// How a posted call stands in the engine: a message's payload is a retained
// `PostedCall`, its invoke is `PostedCall.invoke`, its free_payload releases it. The
// engine calls that once for each message, whatever became of it; so the input
// is freed exactly once. No lock is held then.

#if !hasFeature(Embedded)
  /// What waits in a queue for a token.
  @usableFromInline
  class PostedCall {
    @usableFromInline
    init() {}

    /// Calls a function of the signature that `ClosureBox` tells of.
    @usableFromInline
    func deliver(
      _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?
    ) {}

    static let invoke: Invoke = { function, context, payload in
      guard let function, let payload else { return }
      Unmanaged<PostedCall>.fromOpaque(payload)._withUnsafeGuaranteedRef {
        $0.deliver(function, context)
      }
    }

    static let free: FreePayload = { payload in
      guard let payload else { return }
      Unmanaged<PostedCall>.fromOpaque(payload).release()
    }
  }

  /// An input of a call whose output nobody waits for.
  @usableFromInline
  final class PostedInput<Input: Sendable, Output>: PostedCall {
    @usableFromInline let input: Input

    @inlinable
    init(_ input: Input) { self.input = input }

    @inlinable
    override func deliver(
      _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?
    ) {
      var output: Output?
      _ = callFunction(function, context, input, &output)
    }
  }

  /// Calls a function with a value; answers with its raw status, after 0 with
  /// an output.
  @inlinable
  func callFunction<Input, Output>(
    _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?,
    _ input: Input, _ output: inout Output?
  ) -> Int32 {
    withUnsafePointer(to: input) { input in
      withUnsafeTemporaryAllocation(of: Output.self, capacity: 1) { room in
        let target = room.baseAddress.unsafelyUnwrapped
        let status = callFunction(
          function, context, UnsafeRawPointer(input),
          UnsafeMutableRawPointer(target))
        if status == 0 { output = target.move() }
        return status
      }
    }
  }

  @usableFromInline
  func callFunction(
    _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?,
    _ input: UnsafeRawPointer, _ output: UnsafeMutableRawPointer
  ) -> Int32 {
    unsafeBitCast(function, to: ClosureBox.Function.self)(
      context, input, output)
  }
#endif
