// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What is special about a callback.
  public struct CallbackOptions: OptionSet, Sendable {
    /// The bits in C.
    public let rawValue: UInt32

    /// Makes a set of options from bits; unknown ones are refused by
    /// registering.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The first call ends it, before the closure runs: it runs at most once.
    public static let oneShot = CallbackOptions(
      rawValue: RegistrationFlags.oneShot)
    /// It may be called on the registering thread only.
    public static let threadBound = CallbackOptions(
      rawValue: RegistrationFlags.threadBound)
  }
#endif
