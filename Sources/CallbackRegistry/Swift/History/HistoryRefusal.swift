// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Attempts of one thread to call a handle that were refused with one
  /// status.
  public struct HistoryRefusal: Sendable {
    /// The number of the process in the file.
    public let run: Int64
    /// What was to be called.
    public let handle: UInt64
    /// That one's name; empty when the file does not know it.
    public let label: String
    /// The caller: its name and number, such as `main#1`.
    public let thread: String
    /// What the caller was answered, as in C: `CBR_E_STALE`.
    public let status: String
    /// How often.
    public let count: Int64
    /// When the first of these attempts was made.
    public let first: HistoryTime
    /// When the last of them was made.
    public let last: HistoryTime
    /// When what was called had ended; nil when it is live.
    public let ended: HistoryTime?
    /// Why it had ended; nil when it is live.
    public let reason: EndReason?

    /// Whether the last attempt came after the end.
    public var isLate: Bool { ended.map { last >= $0 } ?? false }
  }

  extension AuditHistory {
    /// Who was refused, in the order of the first refusals.
    ///
    /// - Parameter handle: What was to be called; nil: everything.
    /// - Returns: One row for each handle, thread and status.
    public func refusals(
      about handle: UInt64? = nil
    ) -> HistoryRows<HistoryRefusal> {
      HistoryRows(
        source: source,
        query: HistoryRows.Query(
          sql: HistoryRefusal.sql,
          parameters: [.number(handle.map(Int64.init(bitPattern:)))]
        ) { row in (HistoryRefusal(row), row.integer(0)) },
        first: 0)
    }
  }

  extension HistoryRefusal {
    fileprivate init(_ row: Statement) {
      run = row.integer(1)
      handle = row.unsigned(2)
      label = row.string(3) ?? ""
      thread = row.string(4) ?? ""
      status = row.string(5) ?? ""
      count = row.integer(6)
      first = HistoryTime(nanosecondsSince1970: row.integer(7))
      last = HistoryTime(nanosecondsSince1970: row.integer(8))
      ended = row.time(9)
      reason = row.optionalInteger(10).map {
        EndReason(number: UInt32(truncatingIfNeeded: $0))
      }
    }

    fileprivate static var sql: StaticString {
      """
      SELECT f.first_sequence, f.run, f.token, c.label, h.title,
        coalesce(s.name, 'status ' || f.status), f.refusals,
        f.first_time_ns + u.realtime_offset_ns,
        f.last_time_ns + u.realtime_offset_ns,
        t.ended_time_ns + u.realtime_offset_ns, t.ended_reason
      FROM refusal f
      JOIN run u ON u.run = f.run
      LEFT JOIN token t ON t.token = f.token AND t.run = f.run
      LEFT JOIN callback c ON c.callback = t.callback
      LEFT JOIN thread h ON h.thread = f.thread
      LEFT JOIN status s ON s.status = f.status
      WHERE f.first_sequence > ?1 AND (?3 IS NULL OR f.token = ?3)
      ORDER BY f.first_sequence LIMIT ?2
      """
    }
  }
#endif
