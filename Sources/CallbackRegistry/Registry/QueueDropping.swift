// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What becomes of messages that are not delivered: each payload is freed once,
/// and the history is told why (G21).
///
/// No lock is held while a payload is freed, or something recorded.
extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Drops a message that is in the queue no more.
  package func drop(
    _ message: Message, _ status: Status, _ handle: UInt64,
    thread: ThreadPointer
  ) {
    let told = pointee.monitor.locked { pointee.drops.add(message, status) }
    tell(told.former, handle, thread: thread)
    tell(told.now, handle, thread: thread)
    Hook.messageDropped.reached(handle)
    message.freePayload()
  }

  /// Tells the history what it has not yet been told.
  package func tellDrops(_ handle: UInt64, thread: ThreadPointer) {
    let run = pointee.monitor.locked { pointee.drops.takeUntold() }
    tell(run, handle, thread: thread)
  }

  private func tell(
    _ run: DropRun?, _ handle: UInt64, thread: ThreadPointer
  ) {
    guard let run, let registry = pointee.registry,
      Table.knownSlot(at: Handle.index(of: handle)).isKnownToHistory
    else { return }
    registry.record(
      .messagesDropped, handle,
      argument: UInt32(bitPattern: run.status.rawValue),
      payload: Payload(run.token, run.untold, run.first), thread: thread)
  }

  /// Drops all that is left of a queue that has ended.
  ///
  /// The calling thread has claimed it. Who jumps out of a payload's function
  /// goes on with the next one.
  func dropAll(_ handle: UInt64, thread: ThreadPointer) {
    while let message = takeLeft() {
      drop(message, .closed, handle, thread: thread)
    }
  }

  private func takeLeft() -> Message? {
    pointee.monitor.locked {
      if let message = pointee.delivery.message {
        pointee.delivery.message = nil
        pointee.stolen &+= 1
        pointee.counts.droppedEnded += 1
        return message.pointee
      }
      guard let message = takeOldest() else { return nil }
      pointee.counts.droppedEnded += 1
      return message
    }
  }

  /// The delivering thread has jumped out of what it delivered, or ended in it.
  ///
  /// That was delivered; its payload is freed, and others may deliver. A queue
  /// whose thread has ended gets another one, or ends.
  ///
  /// A poster's pin is at another depth, or on another thread.
  func abandonDelivery(
    _ handle: UInt64, at pin: UInt32, cause: UInt32, thread: ThreadPointer
  ) {
    let message: Message? = pointee.monitor.locked {
      guard pointee.deliverer == thread, pointee.delivererPin == pin else {
        return nil
      }
      let message = pointee.delivery.message?.pointee ?? Message()
      pointee.delivery.message = nil
      return message
    }
    guard let message else { return }
    message.freePayload()
    let isFinished = endDelivering(canGoOn: false) == .finished
    let isWithoutThread =
      pointee.options.hasThread && cause == AbandonCause.threadEnded
      && !cbr_thread_start_delivering(pointee.body, self)
    guard isFinished || isWithoutThread else { return }
    _ = Ending.end(
      handle, reason: isFinished ? Reason.ended : Reason.cancelled,
      waitingUntil: nil)
    guard isWithoutThread else { return }
    // The pin is still there: this cannot be the last hold.
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    _ = Protocol.dropLease(slot, handle: handle)
  }
}

extension Message {
  package func freePayload() { free?(payload) }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// What a thread that has nothing more to deliver does next.
  package enum Outcome {
    case done
    /// Somebody wanted to deliver meanwhile: it delivers again.
    case again
    /// The queue was to end when this is over.
    case finished
  }

  /// Lets others deliver.
  ///
  /// What is left makes the descriptor readable anew, for those that poll for
  /// edges.
  package func endDelivering(canGoOn: Bool) -> Outcome {
    pointee.monitor.locked {
      let isEmpty =
        waitingCount == 0 && pointee.delivery.message == nil && !hasErrands
      if canGoOn, pointee.isWantedAgain, !isEmpty, !pointee.isEnded {
        pointee.isWantedAgain = false
        return .again
      }
      pointee.isWantedAgain = false
      pointee.deliverer = nil
      if let wakeup = pointee.wakeup {
        if !isEmpty {
          cbr_wakeup_set(wakeup)
        } else if pointee.isReadable {
          cbr_wakeup_clear(wakeup)
        }
        pointee.isReadable = !isEmpty
        armForAlarms()
      } else if !isEmpty {
        pointee.monitor.wake()
      }
      return isEmpty && pointee.isFinishing ? .finished : .done
    }
  }

  /// Tells the history the counts so far, if they are new to it.
  func recordCounts(_ handle: UInt64, thread: ThreadPointer) {
    tellDrops(handle, thread: thread)
    guard let registry = pointee.registry else { return }
    let counts: QueueCounts? = pointee.monitor.locked {
      let counts = countsNow()
      guard pointee.toldProgress != counts.progress else { return nil }
      pointee.toldProgress = counts.progress
      return counts
    }
    guard let counts else { return }
    registry.record(
      .queueCounted, handle, counts: counts, thread: thread)
  }
}
