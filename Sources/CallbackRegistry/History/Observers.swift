// SPDX-License-Identifier: Apache-2.0
//
// Who is told how a history is: when it can no longer be written, when it can
// be again, and when events were lost. The writer's thread tells them, with no
// lock held.
//
// Guarded by `monitor`: all of it.
// Memory: an observer belongs to its registry, which takes it out before it is
// freed; whoever takes one out that is being told waits, unless it is told
// just then by the same thread, which then frees it.

import CPlatform

/// Told with a state as in `Recorder.State`, and a sentence that is valid until
/// it returns.
package typealias StateChanged =
  @convention(c) (
    UnsafeMutableRawPointer?, UInt32, UnsafePointer<CChar>?
  ) -> Void

package struct Observer {
  let changed: StateChanged
  let context: UnsafeMutableRawPointer?
  /// Given the context when nobody will be told any more.
  let destroy: Destroy?
  /// The last round of telling that it was in.
  fileprivate var round: UInt64 = 0
  fileprivate var isOut = false
  fileprivate var next: ObserverPointer?
}

package typealias ObserverPointer = UnsafeMutablePointer<Observer>

struct Observers {
  let monitor: Monitor
  private var first: ObserverPointer?
  private var round: UInt64 = 0
  /// Who is being told, and by which thread.
  private var told: ObserverPointer?
  private var teller: UInt32 = 0

  init(monitor: Monitor) { self.monitor = monitor }

  var isEmpty: Bool { first == nil }

  mutating func add(_ observer: ObserverPointer) {
    observer.pointee.round = round
    observer.pointee.next = first
    first = observer
  }

  mutating func remove(_ observer: ObserverPointer) {
    if first == observer {
      first = observer.pointee.next
      return
    }
    var before = first
    while let each = before, each.pointee.next != observer {
      before = each.pointee.next
    }
    before?.pointee.next = observer.pointee.next
  }

  mutating func beginRound() {
    round += 1
    teller = cbr_thread_kernel_number()
  }

  /// The next one that this round has not told.
  mutating func next() -> ObserverPointer? {
    var observer = first
    while let each = observer, each.pointee.round == round {
      observer = each.pointee.next
    }
    observer?.pointee.round = round
    told = observer
    return observer
  }

  func isTold(_ observer: ObserverPointer) -> Bool { told == observer }

  /// Whether the calling thread is telling.
  var isTeller: Bool {
    told != nil && teller == cbr_thread_kernel_number()
  }
}

extension UnsafeMutablePointer where Pointee == History {
  private var monitor: Monitor { pointee.observers.monitor }

  /// Has somebody told from now on; nil without memory.
  package func observe(
    _ changed: StateChanged, context: UnsafeMutableRawPointer?,
    destroy: Destroy?
  ) -> ObserverPointer? {
    guard let observer = Memory.allocate(Observer.self) else { return nil }
    observer.initialize(
      to: Observer(changed: changed, context: context, destroy: destroy))
    monitor.locked { pointee.observers.add(observer) }
    return observer
  }

  /// Ends that: when this returns, nobody is told any more.
  ///
  /// The context of one that was never the registry's stays its giver's.
  package func endObserving(
    _ observer: ObserverPointer, keepsContext: Bool = false
  ) {
    let isFree = monitor.locked {
      pointee.observers.remove(observer)
      if pointee.observers.isTold(observer), pointee.observers.isTeller {
        observer.pointee.isOut = true
        return false
      }
      while pointee.observers.isTold(observer) {
        _ = monitor.wait(until: .never)
      }
      return true
    }
    guard isFree else { return }
    if keepsContext { Memory.release(observer) } else { Self.free(observer) }
  }

  private static func free(_ observer: ObserverPointer) {
    let context = observer.pointee.context
    let destroy = observer.pointee.destroy
    Memory.release(observer)
    destroy?(context)
  }

  /// Whether the calling thread tells somebody just now: nothing is written
  /// before that returns.
  package var isTellingHere: Bool {
    monitor.locked { pointee.observers.isTeller }
  }

  var isObserved: Bool {
    monitor.locked { !pointee.observers.isEmpty }
  }

  /// Tells all of them.
  func tell(_ state: Recorder.State, _ sentence: UnsafePointer<CChar>) {
    monitor.lock()
    pointee.observers.beginRound()
    while let observer = pointee.observers.next() {
      let changed = observer.pointee.changed
      let context = observer.pointee.context
      monitor.unlock()
      changed(context, state.rawValue, sentence)
      monitor.lock()
      let isOut = observer.pointee.isOut
      monitor.wake()
      guard isOut else { continue }
      monitor.unlock()
      Self.free(observer)
      monitor.lock()
    }
    monitor.unlock()
  }
}
