// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What emitting a signal has come to.
  public struct Emission: Sendable, Hashable {
    /// How an emission can end.
    public enum Ending: Sendable, Hashable {
      /// Every handler had its turn.
      case complete
      /// The handler with this number answered that it was to stop.
      case stopped(by: UInt64)
      /// The signal was ended meanwhile.
      case signalEnded
    }

    /// Handlers that were called.
    public let called: Int
    /// Handlers that were passed over, being blocked; of a blocked signal, all
    /// that it has.
    public let blocked: Int
    /// Handlers that will be called on their queues.
    public let queued: Int
    /// Handlers whose queue did not take the message.
    public let refused: Int
    /// How it ended.
    public let ending: Ending

    /// Whether it ended before every handler had its turn.
    public var isStopped: Bool { ending != .complete }
  }

  extension Emission {
    fileprivate init(_ counts: EmissionCounts, _ status: Status) {
      called = Int(clamping: counts.called)
      blocked = Int(clamping: counts.blocked)
      queued = Int(clamping: counts.queued)
      refused = Int(clamping: counts.refused)
      ending =
        switch (status, counts.stoppedBy) {
        case (.stopped, Handle.none): .signalEnded
        case (.stopped, let handler): .stopped(by: handler)
        default: .complete
        }
    }
  }

  /// The part of an emission that is the same for all types.
  @usableFromInline
  func performEmission(
    _ signal: UInt64, input: UnsafeRawPointer
  ) throws(RegistryError) -> Emission {
    var counts = EmissionCounts()
    // Handlers read it only: their function says so (HandlerBox.swift).
    let request = EmissionRequest(
      signal: signal, argument: UnsafeMutableRawPointer(mutating: input))
    let status = Emitting.emit(request, result: &counts)
    guard status == .ok || status == .stopped else {
      throw RegistryError(status, about: signal)
    }
    return Emission(counts, status)
  }
#endif
