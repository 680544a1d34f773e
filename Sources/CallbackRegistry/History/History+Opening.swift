// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension UnsafeMutablePointer where Pointee == History {
  /// Opens a history, or shares the one that this process has open at the same
  /// path.
  ///
  /// Nil: `status` and a sentence in `problem` say why.
  package static func open(
    _ options: HistoryOptions, status: inout Status, problem: inout Text
  ) -> HistoryPointer? {
    status = .ok
    var path: UnsafeMutablePointer<CChar>?
    if let given = options.path {
      path = cbr_absolute_path(given)
      let obstacle = cbr_path_obstacle(given)
      if path == nil, obstacle != CBR_PATH_FREE {
        let isTooLong = obstacle == CBR_PATH_TOO_LONG
        status = .audit
        problem.append(
          .obstacle(isTooLong ? obstacle : Int32(CBR_PATH_NO_DIRECTORY)),
          path: given)
        return nil
      }
    }
    var directory: UnsafeMutablePointer<CChar>?
    if let given = options.ringDirectory {
      directory = NamedDirectory.absolute(
        given, status: &status, problem: &problem)
      if directory == nil {
        Memory.release(path)
        return nil
      }
    }
    let hasPath = (path != nil) == (options.path != nil)
    guard hasPath,
      let history = make(options, path: path, ringDirectory: directory)
    else {
      Memory.release(path)
      Memory.release(directory)
      status = .noMemory
      problem.append(Status.noMemory.text)
      return nil
    }
    guard let path else { return history }
    let joined = Histories.join(history)
    if joined != history {
      history.destroy()
      return joined
    }
    do throws(OpeningError) {
      try history.openDatabase(path)
    } catch {
      status = error.status
      problem.append(error, path: path)
      Histories.remove(history)
      history.destroy()
      return nil
    }
    if let database = history.pointee.database {
      cbr_database_enter()
      try? Run.noteEvidence(
        of: database.run, cbr_hash_prepare() ? "on" : BlockChain.missing,
        on: database.connection)
      history.prepareRings(database)
      cbr_database_leave()
    }
    Histories.settle(history)
    return history
  }

  /// Opens the database; one that is a history and damaged is set aside, and
  /// another one made.
  private func openDatabase(
    _ path: UnsafePointer<CChar>
  ) throws(OpeningError) {
    cbr_database_enter()
    defer { cbr_database_leave() }
    let found = FileIdentity(of: path)
    do throws(OpeningError) {
      pointee.database = try Database.open(path, run: pointee.runIdentity)
    } catch {
      guard case .damaged = error, let found else { throw error }
      pointee.database = try openInstead(of: found)
    }
    pointee.file = FileIdentity(of: path)
  }

  /// A history without a writer thread, for rings that others have filled.
  static func makeForRecovery() -> HistoryPointer? {
    make(
      HistoryOptions(
        path: nil, ringBytes: 0, callsPerSecond: .max,
        blockTimeoutNanoseconds: 0),
      path: nil, ringDirectory: nil)
  }

  /// Makes a history without a database; nil without memory.
  ///
  /// It takes over the path and the directory when it succeeds.
  private static func make(
    _ options: HistoryOptions, path: UnsafeMutablePointer<CChar>?,
    ringDirectory: UnsafeMutablePointer<CChar>?
  ) -> HistoryPointer? {
    let history = Memory.allocate(History.self)
    let recorder = Memory.allocate(Recorder.self)
    let turn = Memory.allocate(Turn.self)
    let monitors = (
      Monitor.make(), Monitor.make(), Monitor.make(), Monitor.make(),
      Monitor.make()
    )
    guard let history, let recorder, let turn, let forRecorder = monitors.0,
      let forWriter = monitors.1, let forProgress = monitors.2,
      let forTurn = monitors.3, let forObservers = monitors.4
    else {
      monitors.0?.destroy()
      monitors.1?.destroy()
      monitors.2?.destroy()
      monitors.3?.destroy()
      monitors.4?.destroy()
      Memory.release(turn)
      Memory.release(recorder)
      Memory.release(history)
      return nil
    }
    turn.initialize(to: Turn(monitor: forTurn))
    recorder.initialize(
      to: Recorder(
        identity: Histories.newIdentity(), monitor: forRecorder,
        writer: forWriter,
        ringRecords: options.ringBytes / UInt64(EventLayout.recordBytes),
        blockTimeoutNanoseconds: options.blockTimeoutNanoseconds,
        callPolicy: options.callPolicy, eventPolicy: options.eventPolicy,
        startArgument: UnsafeMutableRawPointer(history),
        start: { argument in
          argument?.assumingMemoryBound(to: History.self).startWriter()
        }))
    history.initialize(
      to: History(
        recorder: recorder, path: path, ringDirectory: ringDirectory,
        callsPerSecond: options.callsPerSecond, limits: options.limits,
        progress: forProgress, turn: turn,
        observers: Observers(monitor: forObservers)))
    return history
  }

  /// Frees a history that nobody uses any more.
  func destroy() {
    pointee.recorder.destroy()
    Memory.release(pointee.recorder)
    pointee.turn.pointee.monitor.destroy()
    Memory.release(pointee.turn)
    pointee.progress.destroy()
    pointee.observers.monitor.destroy()
    Memory.release(pointee.path)
    Memory.release(pointee.ringDirectory)
    Memory.release(pointee.ringPath)
    deinitialize(count: 1)
    Memory.release(self)
  }
}
