// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension HistoryFile {
  /// Why a history got no seal.
  package enum SealProblem {
    case noHash
    case exists
    case busy
    /// It does not say how many blocks it has.
    case damaged
    /// For a reason of the system's; 0: it makes no secrets.
    case failed(Int32)
  }

  /// Makes the seal of a history that exists, for its next block.
  ///
  /// `body` is given the first key, which is nowhere else but in the file.
  /// Nil: it was; or `status` and a sentence in `problem` say why the history
  /// cannot be opened.
  package static func seal(
    _ path: UnsafePointer<CChar>, status: inout Status, problem: inout Text,
    _ body: (borrowing SealKey) -> Void
  ) -> SealProblem? {
    guard cbr_hash_prepare() else { return .noHash }
    let outcome = open(path, status: &status, problem: &problem) {
      absolute, database -> Outcome? in
      guard let key = SealKey(), let name = try? Scratch(bytes: 8_192)
      else { return nil }
      var text = name.text
      text.append(absolute)
      text.append(".seal")
      let outcome = make(key, at: name.start, of: absolute, database)
      if case .made = outcome { body(key) }
      return outcome
    }
    return switch outcome {
    case nil, .made: nil
    case .problem(let problem): problem
    }
  }

  private enum Outcome {
    case made
    case problem(SealProblem)
  }

  /// No block is added meanwhile: so the next one is sealed.
  private static func make(
    _ key: borrowing SealKey, at path: UnsafePointer<CChar>,
    of history: UnsafePointer<CChar>, _ database: Database
  ) -> Outcome {
    let deadline = Deadline.after(2_000_000_000)
    while true {
      do throws(DatabaseError) {
        try database.connection.lease?.pointee.take()
        break
      } catch {
        guard error.isBusy, !deadline.hasPassed else { return .problem(.busy) }
      }
    }
    defer { database.connection.lease?.pointee.give() }
    let last = try? database.connection.integer(
      "SELECT value FROM meta WHERE name = 'blocks'")
    guard let last, last >= 0, last < .max else { return .problem(.damaged) }
    guard key.makeSecret(block: last + 1) else {
      return .problem(.failed(0))
    }
    let reason = key.create(at: path, of: history)
    switch reason {
    case 0: return .made
    case Int32(CBR_FILE_IN_USE): return .problem(.exists)
    default: return .problem(.failed(reason))
    }
  }
}
