// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Why something ended: one of the library's reasons, or one of yours.
  public struct EndReason: Hashable, Sendable {
    /// The number in C and in the history.
    public let number: UInt32

    /// Takes up a number from C or from the history.
    public init(number: UInt32) { self.number = number }

    /// Makes a reason of the program's own, which is recorded as a number.
    ///
    /// - Parameter number: From 0 up; beyond 4 294 966 295 it is that.
    /// - Returns: A reason that no other number has.
    public static func user(_ number: UInt32) -> EndReason {
      let (sum, overflow) = Reason.user.addingReportingOverflow(number)
      return EndReason(number: overflow ? .max : sum)
    }

    /// The program ended it.
    public static let ended = EndReason(number: Reason.ended)
    /// What it belonged to died.
    public static let ownerDied = EndReason(number: Reason.ownerDied)
    /// The object that it was registered to died.
    public static let objectDied = EndReason(number: Reason.objectDied)
    /// It was still live when its registry was closed: a leak.
    public static let registryClosed = EndReason(
      number: Reason.registryClosed)
    /// It could be called once, and was.
    public static let consumed = EndReason(number: Reason.consumed)
    /// Another callback took its place.
    public static let replaced = EndReason(number: Reason.replaced)
    /// What it was for was cancelled.
    public static let cancelled = EndReason(number: Reason.cancelled)
    /// What it was for took too long.
    public static let timedOut = EndReason(number: Reason.timedOut)
    /// Its plug-in is about to be unloaded.
    public static let unloaded = EndReason(number: Reason.unloaded)
  }

  extension EndReason: CustomStringConvertible {
    /// The words that explanations use.
    public var description: String {
      if let name = Reason.name(number) { return "\(name)" }
      return "reason \(number)"
    }
  }
#endif
