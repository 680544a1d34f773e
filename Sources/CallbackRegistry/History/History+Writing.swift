// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == History {
  /// How long closing tries to prepare a writer.
  private static var closingPatience: UInt64 { 1_000_000_000 }

  /// Starts the writer thread if there is none.
  ///
  /// Called for every new ring; an idle history has no thread.
  func startWriter() {
    let (isFirst, _) = pointee.isStarted.compareExchange(
      expected: false, desired: true, ordering: .acquiringAndReleasing)
    guard isFirst else { return }
    let hasStarted = cbr_thread_start(
      { argument in
        argument?.assumingMemoryBound(to: History.self).writeUntilClosed()
      }, self)
    if !hasStarted {
      setState(.degraded)
      pointee.isStarted.store(false, ordering: .releasing)
    }
  }

  /// The body of the writer thread.
  private func writeUntilClosed() {
    var status = Status.audit
    var closingDeadline: Deadline?
    var fault = Fault()
    while true {
      if let writer = makeWriter(after: &fault) {
        guard let result = writer.pointee.loop() else {
          // The process ends with this thread; its exit handlers may want
          // another one, which goes on.
          pointee.idleWriter = writer
          pointee.isStarted.store(false, ordering: .releasing)
          return
        }
        destroy(writer)
        status = result
        break
      }
      setState(.degraded)
      if pause(closingUntil: &closingDeadline) { break }
    }
    finish(status)
  }

  /// Prepares the writer; for a history in memory, also its database.
  ///
  /// Nil without memory, or when another program is in the way. What failed
  /// before is the writer's to tell of.
  private func makeWriter(
    after fault: inout Fault
  ) -> UnsafeMutablePointer<Writer>? {
    if let idle = pointee.idleWriter {
      pointee.idleWriter = nil
      return idle
    }
    guard let writer = Memory.allocate(Writer.self) else {
      note(.noMemory, in: &fault)
      return nil
    }
    pointee.turn.takeAsWriter()
    defer { pointee.turn.give() }
    do throws(OpeningError) {
      let database: Database
      if let known = pointee.database {
        database = known
      } else {
        database = try Database.open(nil, run: pointee.runIdentity)
        pointee.database = database
      }
      do throws(DatabaseError) {
        writer.initialize(to: try Writer(self, database: database))
        writer.pointee.fault = fault
        return writer
      } catch { throw .database(error) }
    } catch {
      if case .database(let error) = error { note(error, in: &fault) }
      Memory.release(writer)
      return nil
    }
  }

  private func note(_ error: DatabaseError, in fault: inout Fault) {
    fault.add(error, lost: recorder.lostEvents)
    fault.isSevere = true
    pointee.faultCode.store(error.code, ordering: .relaxed)
  }

  private func destroy(_ writer: UnsafeMutablePointer<Writer>) {
    pointee.turn.takeAsWriter()
    writer.deinitialize(count: 1)
    pointee.turn.give()
    Memory.release(writer)
  }

  /// Waits before the next try to prepare.
  ///
  /// True: the history is being closed, and it has been tried for long enough.
  private func pause(closingUntil deadline: inout Deadline?) -> Bool {
    let orders = recorder.pointee.writer.locked { pointee.orders }
    report { reached in reached.failed = orders.flushes }
    if orders.isClosing {
      deadline = deadline ?? .after(Self.closingPatience)
      if deadline?.hasPassed == true { return true }
    }
    pauseAfterFailure(nanoseconds: 100_000_000, after: orders)
    return false
  }

  /// Waits for a while, or until there are other orders.
  func pauseAfterFailure(nanoseconds: UInt64, after orders: History.Orders) {
    let deadline = Deadline.after(nanoseconds)
    pointee.progress.lock()
    while recorder.pointee.writer.locked({ pointee.orders.flushes })
      == orders.flushes, pointee.progress.wait(until: deadline)
    {}
    pointee.progress.unlock()
  }

  /// Tells producers whether waiting makes sense.
  func setState(_ state: Recorder.State) {
    let before = recorder.pointee.state.exchange(
      state.rawValue, ordering: .relaxed)
    if before != state.rawValue, state == .degraded {
      recorder.pointee.monitor.locked { recorder.pointee.monitor.wake() }
    }
  }
}
