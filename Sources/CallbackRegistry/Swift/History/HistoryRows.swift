// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Rows of a history, in the order in which they were written.
  ///
  /// Each loop reads them anew. It ends with the last row that there is at
  /// that time, and throws `history` when the file cannot be read any more,
  /// `closed` when a history in memory is gone with its registry.
  public struct HistoryRows<Row: Sendable>: AsyncSequence, Sendable {
    /// How rows are got.
    struct Query: Sendable {
      /// Its parameters are ?1, after which key; ?2, how many rows; and those
      /// that follow.
      let sql: StaticString
      let parameters: [Parameter]
      /// The row, and its key.
      let read: @Sendable (Statement) -> (row: Row, key: Int64)
    }

    let source: AuditHistory.Source
    let query: Query
    let first: Int64

    /// Begins at the first row.
    public func makeAsyncIterator() -> Iterator {
      Iterator(rows: self, last: first)
    }

    /// Reads one row after the other.
    public struct Iterator: AsyncIteratorProtocol {
      private let rows: HistoryRows
      private var reader: HistoryReader?
      private var page: [Row] = []
      private var next = 0
      private var last: Int64
      private var isAtEnd = false

      fileprivate init(rows: HistoryRows, last: Int64) {
        self.rows = rows
        self.last = last
      }

      /// The next row; nil after the last one.
      public mutating func next() async throws(RegistryError) -> Row? {
        if next == page.count, !isAtEnd { try readPage() }
        guard next < page.count else { return nil }
        defer { next += 1 }
        return page[next]
      }

      private mutating func readPage() throws(RegistryError) {
        if self.reader == nil { self.reader = try HistoryReader(rows.source) }
        guard let reader else { return }
        let (query, after) = (rows.query, last)
        var page: [(row: Row, key: Int64)] = []
        try reader.read { connection throws(DatabaseError) in
          page = try query.page(of: connection, after: after)
        }
        self.page = page.map(\.row)
        next = 0
        last = page.last?.key ?? last
        isAtEnd = page.count < Query.pageSize
      }
    }
  }

  // The reader is the iterator's own.
  @available(*, unavailable)
  extension HistoryRows.Iterator: Sendable {}

  /// What a question to a history leaves open.
  enum Parameter: Sendable {
    case number(Int64?)
    case text(String?)
  }

  extension HistoryRows.Query {
    fileprivate static var pageSize: Int { 256 }

    fileprivate func page(
      of connection: Connection, after key: Int64
    ) throws(DatabaseError) -> [(row: Row, key: Int64)] {
      let statement = try connection.prepare(sql)
      defer { statement.finalize() }
      statement.bind(1, key)
      statement.bind(2, Int64(Self.pageSize))
      var page: [(row: Row, key: Int64)] = []
      try statement.bind(parameters[...], from: 3) {
        () throws(DatabaseError) in
        while try statement.step() { page.append(read(statement)) }
      }
      return page
    }
  }

  extension Statement {
    /// Binds, and calls the body while the texts are in place.
    fileprivate func bind(
      _ parameters: ArraySlice<Parameter>, from index: Int32,
      _ body: () throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
      guard let first = parameters.first else { return try body() }
      let others = parameters.dropFirst()
      switch first {
      case .number(nil), .text(nil): bindNull(index)
      case .number(let number?): bind(index, number)
      case .text(var text?):
        let result = text.withUTF8 { bytes in
          bytes.withMemoryRebound(to: CChar.self) { characters in
            bind(index, characters.baseAddress, length: characters.count)
            return Result { () throws(DatabaseError) in
              try bind(others, from: index + 1, body)
            }
          }
        }
        return try result.get()
      }
      try bind(others, from: index + 1, body)
    }

    func optionalInteger(_ column: Int32) -> Int64? {
      isNull(column) ? nil : integer(column)
    }

    func string(_ column: Int32) -> String? {
      text(column).map { String(cString: $0) }
    }

    func time(_ column: Int32) -> HistoryTime? {
      optionalInteger(column).map { HistoryTime(nanosecondsSince1970: $0) }
    }

    func duration(_ column: Int32) -> Duration? {
      optionalInteger(column).map { .nanoseconds($0) }
    }
  }
#endif
