// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension UnsafeMutablePointer where Pointee == History {
  /// Opens a history, or shares the one that this process has open at the
  /// same path. Nil: `status` and a sentence in `problem` say why.
  package static func open(
    _ options: HistoryOptions, status: inout Status, problem: inout Text
  ) -> HistoryPointer? {
    status = .ok
    guard let given = options.path else {
      let history = make(options, path: nil)
      if history == nil { status = .noMemory }
      return history
    }
    guard let path = cbr_absolute_path(given) else {
      status = .audit
      problem.append(history: given)
      problem.append(
        "its directory does not exist; make it or name another path")
      return nil
    }
    if let shared = Histories.share(path) {
      Memory.release(path)
      return shared
    }
    return open(file: path, options, status: &status, problem: &problem)
  }

  /// Opens the history of a file. Other openings of the same path wait from
  /// here on, until `settle`.
  private static func open(
    file path: UnsafeMutablePointer<CChar>, _ options: HistoryOptions,
    status: inout Status, problem: inout Text
  ) -> HistoryPointer? {
    guard let history = Histories.reserve(path, { make(options, path: path) })
    else {
      Memory.release(path)
      status = .noMemory
      return nil
    }
    do throws(OpeningError) {
      history.pointee.database = try Database.open(path)
      Histories.settle(history)
      return history
    } catch {
      status = error.status
      problem.append(history: path)
      problem.append(error, path: path)
      Histories.remove(history)
      history.destroy()
      return nil
    }
  }

  /// Makes a history without a database; nil without memory. Takes over path.
  private static func make(
    _ options: HistoryOptions, path: UnsafeMutablePointer<CChar>?
  ) -> HistoryPointer? {
    guard let history = Memory.allocate(History.self),
      let turn = Memory.allocate(Turn.self),
      let recorder = Memory.allocate(Recorder.self)
    else { return nil }
    recorder.initialize(
      to: Recorder(
        monitor: Monitor.make()!, writer: Monitor.make()!,
        ringRecords: options.ringBytes / UInt64(EventLayout.recordBytes),
        blockTimeoutNanoseconds: options.blockTimeoutNanoseconds,
        startArgument: UnsafeMutableRawPointer(history)
      ) { argument in
        argument?.assumingMemoryBound(to: History.self).startWriter()
      })
    _ = turn
    return history
  }

  /// Frees a history that no thread uses.
  func destroy() {
  }
}
