// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// The life of a handle: who registered it, who ended it, and its calls.
  public struct HistoryLife: Sendable {
    /// How far a life has got, as far as the history knows.
    public enum State: Sendable, Hashable {
      /// It has not ended.
      case live
      /// No call began any more; some may still have been running.
      case ended
      /// It was over: what it held was released.
      case settled
    }

    /// The number of the process in the file.
    public let run: Int64
    /// Its number, unique in its run.
    public let handle: UInt64
    /// What it is.
    public let kind: Registry.Item.Kind
    /// Its name.
    public let label: String
    /// The number of what it belongs to; 0 for a registry.
    public let owner: UInt64
    /// How far it has got.
    public let state: State
    /// When it was registered.
    public let registered: HistoryTime?
    /// Where, as `file:line`, or as an address in a program that is guarded;
    /// empty when that was not given.
    public let site: String
    /// By which thread; empty when that is unknown.
    public let registeredBy: String
    /// When it ended; nil while it is live.
    public let ended: HistoryTime?
    /// Why; nil while it is live.
    public let reason: EndReason?
    /// By which thread; empty while it is live.
    public let endedBy: String
    /// Calls that were begun and left.
    public let calls: Int64
    /// Attempts to call that were refused.
    public let refusals: Int64
    /// Calls that were never left.
    public let abandoned: Int64
    /// How long its timed calls took together; nil when none was timed.
    public let total: Duration?
    /// How long the longest of them took.
    public let longest: Duration?
  }

  extension AuditHistory {
    /// What lived, in the order of registration.
    ///
    /// - Parameters:
    ///   - handle: Of that handle alone; nil: of all.
    ///   - label: Of that name alone; nil: of all.
    /// - Returns: One row for each handle but holds.
    public func lives(
      about handle: UInt64? = nil, label: String? = nil
    ) -> HistoryRows<HistoryLife> {
      HistoryRows(
        source: source,
        query: HistoryRows.Query(
          sql: HistoryLife.sql,
          parameters: [
            .number(handle.map(Int64.init(bitPattern:))), .text(label),
          ]
        ) { row in (HistoryLife(row), row.integer(0)) },
        first: 0)
    }
  }

  extension HistoryLife {
    fileprivate init(_ row: Statement) {
      run = row.integer(1)
      handle = row.unsigned(2)
      kind = Registry.Item.Kind(Handle.kind(of: row.unsigned(2))) ?? .token
      label = row.string(3) ?? ""
      owner = row.unsigned(4)
      state =
        row.isNull(8) ? .live : row.isNull(11) ? .ended : .settled
      registered = row.time(5)
      site = row.string(6) ?? ""
      registeredBy = row.string(7) ?? ""
      ended = row.time(8)
      reason = row.optionalInteger(9).map {
        EndReason(number: UInt32(truncatingIfNeeded: $0))
      }
      endedBy = row.string(10) ?? ""
      calls = row.integer(12)
      refusals = row.integer(13)
      abandoned = row.integer(14)
      total = row.duration(15)
      longest = row.duration(16)
    }

    fileprivate static var sql: StaticString {
      """
      SELECT t.registration, t.run, t.token, c.label, t.owner,
        t.registered_time_ns + u.realtime_offset_ns,
        s.file || coalesce(':' || nullif(s.line, 0), ''), rh.title,
        t.ended_time_ns + u.realtime_offset_ns, t.ended_reason, eh.title,
        t.settled_sequence,
        max(t.calls, coalesce(t.attempts - t.outstanding, 0)),
        t.refusals, t.abandoned, t.total_ns, t.max_ns
      FROM token t
      JOIN run u ON u.run = t.run
      LEFT JOIN callback c ON c.callback = t.callback
      LEFT JOIN site s ON s.site = t.registered_site
      LEFT JOIN thread rh ON rh.thread = t.registered_thread
      LEFT JOIN thread eh ON eh.thread = t.ended_thread
      WHERE t.registration > ?1 AND (?3 IS NULL OR t.token = ?3)
        AND (?4 IS NULL OR c.label = ?4)
      ORDER BY t.registration LIMIT ?2
      """
    }
  }
#endif
