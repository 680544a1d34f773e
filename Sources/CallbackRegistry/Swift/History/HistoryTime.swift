// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  import Glibc

  /// When something happened, by the clock on the wall at the beginning of its
  /// run and by the monotonic clock from then on.
  ///
  /// With Foundation it is
  /// `Date(timeIntervalSince1970: Double(time.nanosecondsSince1970) / 1e9)`.
  public struct HistoryTime: Hashable, Comparable, Sendable {
    /// UNIX time, in nanoseconds.
    public let nanosecondsSince1970: Int64

    /// Makes a time, to compare those of a history with.
    ///
    /// - Parameter nanosecondsSince1970: UNIX time; it may be negative.
    public init(nanosecondsSince1970: Int64) {
      self.nanosecondsSince1970 = nanosecondsSince1970
    }

    /// Whether one time is before another.
    public static func < (one: HistoryTime, other: HistoryTime) -> Bool {
      one.nanosecondsSince1970 < other.nanosecondsSince1970
    }

    /// How long after another time this one is; negative: before.
    ///
    /// - Parameter other: Of the same run, or the clock's steps count, too.
    /// - Returns: The difference.
    public func since(_ other: HistoryTime) -> Duration {
      .nanoseconds(nanosecondsSince1970)
        - .nanoseconds(other.nanosecondsSince1970)
    }
  }

  extension HistoryTime: CustomStringConvertible {
    /// UTC, as in the file's views: `2026-01-31T12:00:00.000000Z`.
    public var description: String {
      let second: Int64 = 1_000_000_000
      var (seconds, rest) =
        nanosecondsSince1970.quotientAndRemainder(dividingBy: second)
      if rest < 0 { (seconds, rest) = (seconds - 1, rest + second) }
      var whole = time_t(seconds)
      var parts = tm()
      gmtime_r(&whole, &parts)
      let date = [
        Self.padded(parts.tm_year + 1900, 4), Self.padded(parts.tm_mon + 1, 2),
        Self.padded(parts.tm_mday, 2),
      ].joined(separator: "-")
      let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec]
        .map { Self.padded($0, 2) }.joined(separator: ":")
      return "\(date)T\(clock).\(Self.padded(Int32(rest / 1_000), 6))Z"
    }

    private static func padded(_ number: Int32, _ digits: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
  }
#endif
