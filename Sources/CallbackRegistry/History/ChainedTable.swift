// SPDX-License-Identifier: Apache-2.0

/// A table whose rows the chain of blocks covers, by their rowids.
///
/// In the order of the tables' names, in which a root combines them. What is
/// not here is a sum of what is, or changes: see Documentation.
package enum ChainedTable: Int {
  case call
  case callback
  case controlEvent
  case fault
  case loss
  case note
  case purge
  case site

  package static var count: Int { site.rawValue + 1 }

  /// Of calls, the part of the name before the segment's number.
  package var name: StaticString {
    switch self {
    case .call: "call_"
    case .callback: "callback"
    case .controlEvent: "control_event"
    case .fault: "fault"
    case .loss: "loss"
    case .note: "note"
    case .purge: "purge"
    case .site: "site"
    }
  }

  /// What is hashed of a row.
  ///
  /// Of calls, of which there are most, two columns are put together, which
  /// `condition` says to be possible.
  package var columns: StaticString {
    switch self {
    case .call:
      "sequence, time_ns, ring * 4294967296 + callback, token, argument"
    case .callback: "callback, label"
    case .controlEvent:
      """
      sequence, time_ns, ring, kind, token, callback, argument, thread, \
      ring_sequence, related, site, value, second_value
      """
    case .fault:
      """
      fault, run, cause, sqlite_code, began_time_ns, ended_time_ns, failures, \
      lost
      """
    case .loss:
      """
      loss, run, ring, first_ring_sequence, last_ring_sequence, events, cause, \
      first_time_ns, last_time_ns
      """
    case .note: "sequence, token, text"
    case .purge:
      """
      purge, run, time_ns, rule, table_name, rows, first_sequence, \
      last_sequence, first_run, first_time_ns, last_run, last_time_ns
      """
    case .site: "site, file, line"
    }
  }

  /// Which rows are hashed: all that this library writes.
  package var condition: StaticString {
    switch self {
    case .call:
      """
      kind = 1 AND ring BETWEEN 0 AND 2147483647 \
      AND callback BETWEEN 0 AND 4294967295
      """
    default: "1"
    }
  }
}

/// Rows of one table that one block covers.
struct Content {
  let table: ChainedTable
  /// Of calls.
  var segment: Int64 = 0
  var first: Int64 = 0
  var last: Int64 = 0
  var rows: Int64 = 0
  var digest = Digest()
}

extension Text {
  /// Appends the name of a content's table.
  mutating func append(tableOf content: Content) {
    if content.table == .call {
      append(segment: content.segment)
    } else {
      append(content.table.name)
    }
  }

  /// Appends the query whose answer is hashed.
  mutating func append(queryOf content: Content) {
    append("SELECT ")
    append(content.table.columns)
    append(" FROM ")
    append(tableOf: content)
    append(" WHERE ")
    append(content.table.condition)
    append(" AND rowid BETWEEN ")
    append(content.first)
    append(" AND ")
    append(content.last)
    append(" ORDER BY rowid")
  }
}
