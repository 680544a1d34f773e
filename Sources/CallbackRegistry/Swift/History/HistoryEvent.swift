// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Something that happened.
  public struct HistoryEvent: Sendable {
    /// What kinds of event there are.
    public enum Kind: Sendable, Hashable {
      /// A call that has ended.
      case call
      /// A thread recorded for the first time.
      case threadBegan
      /// A registry was opened.
      case registryOpened
      /// A registry was closed.
      case registryClosed
      /// A handle came to life.
      case registered
      /// A handle ended: no call began any more.
      case ended
      /// Nothing was running any more, and what was held was released.
      case settled
      /// An attempt to call was refused.
      case refused
      /// A hold on a callback was taken.
      case leased
      /// A hold on a callback was given up.
      case leaseEnded
      /// A call was never left: its thread ended in it, or jumped out.
      case abandoned
      /// A level was switched.
      case levelChanged
      /// The program's own remark.
      case note
      /// The process has forked.
      case forked
      /// A delegate property was set.
      case slotSet
      /// What a delegate property held had died.
      case slotCleared
      /// A signal or one of its callbacks was blocked.
      case blocked
      /// A signal or one of its callbacks was unblocked.
      case unblocked
      /// A session's delegate was not told something.
      case undelivered
      /// A session was told to end.
      case sessionEnding
      /// A task of a session was completed.
      case taskCompleted
      /// Messages of a queue were not delivered.
      case messagesDropped
      /// What a queue had counted.
      case queueCounted
      /// One that a later version of the library has written, by its number.
      case other(Int64)
    }

    /// Its place in the file.
    public let sequence: Int64
    /// When it happened; of a call, when that began.
    public let time: HistoryTime
    /// The number of the process in the file.
    public let run: Int64
    /// Whose event it is: its name and number, such as `main#1`; empty when
    /// that is unknown.
    public let thread: String
    /// What happened.
    public let kind: Kind
    /// The number of what it is about; 0 when it is about nothing.
    public let handle: UInt64
    /// That one's name; empty without one.
    public let label: String
    /// The rest in words, as in the file's view `history`: the reason of an
    /// end, the status of a refusal, the text of a note.
    public let detail: String
    /// How long a call took; nil for all other events.
    public let duration: Duration?
  }

  extension AuditHistory {
    /// What happened, event by event.
    ///
    /// - Parameters:
    ///   - handle: What they are about; nil: everything.
    ///   - sequence: They begin after that event; 0: with the first.
    /// - Returns: Events in the order of the file.
    public func events(
      about handle: UInt64? = nil, after sequence: Int64 = 0
    ) -> HistoryRows<HistoryEvent> {
      HistoryRows(
        source: source,
        query: HistoryRows.Query(
          sql: HistoryEvent.sql,
          parameters: [.number(handle.map(Int64.init(bitPattern:)))]
        ) { row in
          let event = HistoryEvent(row)
          return (event, event.sequence)
        },
        first: sequence)
    }
  }

  extension HistoryEvent {
    fileprivate init(_ row: Statement) {
      sequence = row.integer(0)
      time = HistoryTime(nanosecondsSince1970: row.integer(1))
      run = row.integer(2)
      thread = row.string(3) ?? ""
      kind = Kind(row.integer(4))
      handle = row.unsigned(5)
      label = row.string(6) ?? ""
      detail = row.string(7) ?? ""
      duration = row.duration(8)
    }

    fileprivate static var sql: StaticString {
      """
      SELECT e.sequence, e.time_ns + u.realtime_offset_ns, r.run,
        (SELECT h.title FROM thread h
         WHERE h.ring = e.ring AND h.began_sequence <= e.sequence
         ORDER BY h.began_sequence DESC LIMIT 1),
        e.kind, e.token, c.label,
        CASE WHEN e.kind <> 1 THEN (SELECT h.detail FROM history h
          WHERE h.sequence = e.sequence) END,
        CASE e.kind WHEN 1 THEN e.argument END
      FROM (SELECT * FROM event WHERE sequence > ?1
          AND (?3 IS NULL OR token = ?3)
        ORDER BY sequence LIMIT ?2) e
      JOIN ring r ON r.ring = e.ring
      JOIN run u ON u.run = r.run
      LEFT JOIN callback c ON c.callback = e.callback
      ORDER BY e.sequence
      """
    }
  }

  extension HistoryEvent.Kind {
    fileprivate init(_ number: Int64) {
      self =
        switch UInt8(exactly: number).flatMap(EventKind.init(rawValue:)) {
        case .call: .call
        case .thread: .threadBegan
        case .opened: .registryOpened
        case .closed: .registryClosed
        case .registered: .registered
        case .ended: .ended
        case .settled: .settled
        case .refused: .refused
        case .leased: .leased
        case .leaseEnded: .leaseEnded
        case .abandoned: .abandoned
        case .leveled: .levelChanged
        case .note: .note
        case .forked: .forked
        case .slotSet: .slotSet
        case .slotCleared: .slotCleared
        case .blocked: .blocked
        case .unblocked: .unblocked
        case .undelivered: .undelivered
        case .sessionEnding: .sessionEnding
        case .taskCompleted: .taskCompleted
        case .messagesDropped: .messagesDropped
        case .queueCounted: .queueCounted
        case .counted, .aggregated, .continuation, nil: .other(number)
        }
    }
  }

  extension HistoryEvent: CustomStringConvertible {
    /// One line: time, thread, what happened to whom.
    public var description: String {
      let about = handle == 0 ? "" : " \(hexadecimal(handle)) \"\(label)\""
      let rest = duration.map { " \($0)" } ?? (detail.isEmpty ? "" : ": ")
      return "\(time) \(thread) \(kind)\(about)\(rest)\(detail)"
    }
  }
#endif
