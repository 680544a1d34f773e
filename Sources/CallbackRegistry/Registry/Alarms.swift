// SPDX-License-Identifier: Apache-2.0
//
// The clock of a queue. Alarms are set on a queue, which wakes who delivers on
// it at the earliest one: its thread, which sleeps no longer than that, or the
// timer of its descriptor. An alarm that is taken back does not set the timer
// anew; so who delivers may be woken once for nothing.
//
// Shared variables
//   an alarm's time, isSet and links, the heap, and armedTime: guarded by the
//             queue's monitor
//   an alarm's handle and queue: written under the lock of the registry that
//             both are of, while it is not set
//   alarmTime stored under the monitor; loaded by who delivers, too
// Memory: an alarm is taken back before it is freed. A queue is freed under the
// lock of its registry, which who sets or takes back an alarm holds; and when
// it ends, the alarms that are left are taken like those that are due.
// Tried to break by: Tests/C (timeouts.c).

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == Alarm {
  /// An alarm that is not set; nil without memory.
  package static func make(_ step: @escaping HandleStep) -> AlarmPointer? {
    guard let alarm = Memory.allocate(Alarm.self) else { return nil }
    alarm.initialize(to: Alarm(step: step))
    return alarm
  }

  /// Sets an alarm that is not set on a queue; false when that is dead.
  ///
  /// The lock of the registry is held.
  package func set(
    for handle: UInt64, on queue: UInt64, afterNanoseconds timeout: UInt64
  ) -> Bool {
    guard let record = Self.record(of: queue, isLive: true) else {
      return false
    }
    pointee.handle = handle
    pointee.queue = queue
    record.pointee.monitor.locked {
      pointee.time = Deadline.after(timeout).nanoseconds
      record.pointee.alarms.add(self)
      record.noteFirstAlarm()
    }
    return true
  }

  /// Whether it is set, and was not taken yet.
  ///
  /// The lock of the registry is held.
  package var isWaiting: Bool {
    guard let record = Self.record(of: pointee.queue, isLive: false) else {
      return false
    }
    return record.pointee.monitor.locked { pointee.isSet }
  }

  /// Whether the queue that it was set on still is there to tell the time.
  ///
  /// The lock of the registry is held.
  package var isOnLiveQueue: Bool {
    Self.record(of: pointee.queue, isLive: true) != nil
  }

  /// Takes it back, if it is set.
  ///
  /// The lock of the registry is held.
  package func takeBack() {
    guard let record = Self.record(of: pointee.queue, isLive: false) else {
      return
    }
    record.pointee.monitor.locked {
      guard pointee.isSet else { return }
      record.pointee.alarms.remove(self)
      record.noteFirstAlarm()
    }
  }

  private static func record(
    of queue: UInt64, isLive: Bool
  ) -> QueuePointer? {
    guard queue != Handle.none, let slot = Table.slot(of: queue) else {
      return nil
    }
    let word = slot.pointee.word.load(ordering: .relaxed)
    let known = isLive ? word : Handle.handle(ofWord: word)
    return known == queue ? slot.queueRecord : nil
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Whether there is an alarm whose time has come.
  var hasDueAlarm: Bool {
    Deadline(nanoseconds: pointee.alarmTime.load(ordering: .relaxed))
      .hasPassed
  }

  /// Takes the earliest alarm, if it is no later than a time.
  package func takeAlarm(
    upTo time: UInt64
  ) -> (handle: UInt64, step: HandleStep)? {
    guard pointee.alarmTime.load(ordering: .relaxed) <= time else {
      return nil
    }
    return pointee.monitor.locked {
      guard let alarm = pointee.alarms.first, alarm.pointee.time <= time
      else { return nil }
      pointee.alarms.remove(alarm)
      noteFirstAlarm()
      return (alarm.pointee.handle, alarm.pointee.step)
    }
  }

  /// The monitor is held.
  fileprivate func noteFirstAlarm() {
    let time = pointee.alarms.first?.pointee.time ?? .max
    pointee.alarmTime.store(time, ordering: .relaxed)
    if time < pointee.armedTime { armForAlarms() }
  }

  /// Sees to it that who delivers is woken for the earliest alarm.
  ///
  /// The monitor is held.
  package func armForAlarms() {
    let time = pointee.alarmTime.load(ordering: .relaxed)
    guard time != pointee.armedTime else { return }
    pointee.armedTime = time
    if let wakeup = pointee.wakeup {
      cbr_wakeup_at(wakeup, time)
    } else if pointee.isAsleep {
      pointee.isAsleep = false
      pointee.monitor.wake()
    }
  }
}
