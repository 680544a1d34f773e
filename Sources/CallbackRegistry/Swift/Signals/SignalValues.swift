// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Which values are kept for a loop that has not yet asked for them.
  ///
  /// What is not kept is counted: see ``SignalValues/droppedCount``.
  public enum BufferingPolicy: Sendable, Hashable {
    /// So many; when there are more, the newest is dropped. With 0 or less, a
    /// value is only kept when the loop is waiting for it.
    case bufferingOldest(Int)
    /// So many; when there are more, the oldest is dropped. With 0 or less, a
    /// value is only kept when the loop is waiting for it.
    case bufferingNewest(Int)
  }

  extension Signal where Input: Sendable {
    /// The values that are emitted from now on, for one `for await` loop.
    ///
    ///     for await fraction in try progress.values() {
    ///       print(fraction)
    ///     }
    ///
    /// It is connected by this call, so nothing that is emitted after it is
    /// missed but what the policy drops. The connection ends when the loop is
    /// left or its task is cancelled, or when what is returned is released and
    /// no loop was begun. The loop ends when the signal or the connection does:
    /// after the values that are kept by then. It does not keep the signal.
    ///
    /// - Parameters:
    ///   - label: The connection's name in explanations; at most 255 bytes.
    ///   - bufferingPolicy: What is kept for a loop that is slower.
    ///   - priority: Of the connection; higher ones are called first.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    /// - Returns: A sequence that one loop can go through once.
    /// - Throws: As connecting a handler does.
    public func values(
      _ label: String = "values",
      bufferingPolicy: BufferingPolicy = .bufferingNewest(64),
      priority: Int32 = 0, level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line
    ) throws(RegistryError) -> SignalValues<Input> {
      guard let buffer = SignalBuffer<Input>(bufferingPolicy) else {
        throw RegistryError(.noMemory, about: handle)
      }
      let ending = FinishingOnRelease(buffer)
      let traits = CallbackTraits(label, [], level, file, line)
      let connection = try add(traits, nil, priority) { input in
        ending.buffer.put(input)
        return HandlerAnswer.goOn.rawValue
      }
      return SignalValues(SignalSource(buffer, connection.keep().handle))
    }
  }

  /// The values of a signal, for one `for await` loop.
  ///
  /// See ``Signal/values(_:bufferingPolicy:priority:level:file:line:)``.
  public struct SignalValues<Value: Sendable>: AsyncSequence, Sendable {
    /// What a loop gets.
    public typealias Element = Value
    /// A loop cannot fail.
    public typealias Failure = Never

    private let source: SignalSource<Value>

    fileprivate init(_ source: SignalSource<Value>) { self.source = source }

    /// Values that were emitted and that no loop will get: those that the policy
    /// dropped, and those that were kept when the loop was left.
    public var droppedCount: Int { source.buffer.droppedCount }

    /// Whether it is connected at this moment; advice.
    public var isLive: Bool { Liveness.isLive(source.token) }

    /// The life of the connection.
    public var explanation: Explanation { Explanation(of: source.token) }

    /// Begins the loop, which ends the connection when it is left.
    ///
    /// - Returns: What the loop asks for the values. Its copies are the same.
    public func makeAsyncIterator() -> Iterator { Iterator(source) }

    /// What a loop asks for the next value.
    public struct Iterator: AsyncIteratorProtocol {
      /// What a loop gets.
      public typealias Element = Value
      /// A loop cannot fail.
      public typealias Failure = Never

      private let loop: SignalLoop<Value>

      fileprivate init(_ source: SignalSource<Value>) {
        loop = SignalLoop(source)
      }

      /// Waits for the next value.
      ///
      /// - Parameter actor: Where it is waited for.
      /// - Returns: Nil when the connection has ended, or the task was
      ///   cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async -> Value? {
        let source = loop.source
        return await withTaskCancellationHandler {
          await withCheckedContinuation(isolation: actor) { waiter in
            source.buffer.take(waiter)
          }
        } onCancel: {
          source.close()
        }
      }

      /// Waits for the next value.
      ///
      /// - Returns: Nil when the connection has ended, or the task was
      ///   cancelled.
      public mutating func next() async -> Value? {
        await next(isolation: nil)
      }
    }
  }

  /// The connection of a sequence, which ends with it.
  private final class SignalSource<Value: Sendable>: Sendable {
    let buffer: SignalBuffer<Value>
    let token: UInt64

    init(_ buffer: SignalBuffer<Value>, _ token: UInt64) {
      self.buffer = buffer
      self.token = token
    }

    deinit { close() }

    func close() {
      _ = Ending.end(token, reason: Reason.ended, waitingUntil: nil)
      buffer.cancel()
    }
  }

  /// A loop, which ends its connection when it is left.
  private final class SignalLoop<Value: Sendable>: Sendable {
    let source: SignalSource<Value>

    init(_ source: SignalSource<Value>) { self.source = source }

    deinit { source.close() }
  }

  /// What the handler captures: it is released when the connection has ended.
  private final class FinishingOnRelease<Value: Sendable>: Sendable {
    let buffer: SignalBuffer<Value>

    init(_ buffer: SignalBuffer<Value>) { self.buffer = buffer }

    deinit { buffer.finish() }
  }
#endif
