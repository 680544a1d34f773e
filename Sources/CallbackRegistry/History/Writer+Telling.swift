// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Tells observers what has changed, without the turn.
extension Writer {
  /// Losses are not told more often.
  private static var interval: UInt64 { 1_000_000_000 }

  mutating func tellChanges() {
    let state =
      Recorder.State(
        rawValue: recorder.pointee.state.load(ordering: .relaxed)) ?? .good
    let lost =
      recorder.lostEvents
      &+ recorder.pointee.withoutRing.load(ordering: .relaxed)
    let now = cbr_monotonic_nanoseconds()
    let hasLost = lost > toldLost && now &- toldAt > Self.interval
    guard state != toldState || hasLost else { return }
    let newlyLost = lost &- toldLost
    toldState = state
    toldLost = lost
    toldAt = now
    guard history.isObserved, let sentence = try? Scratch(bytes: 1_024) else {
      return
    }
    var text = sentence.text
    append(state, lost: newlyLost, to: &text)
    history.tell(state, sentence.start)
  }

  private func append(
    _ state: Recorder.State, lost: UInt64, to text: inout Text
  ) {
    if state == .degraded {
      history.appendFault(to: &text)
    } else {
      text.append("the history can be written")
    }
    if lost > 0 {
      text.append("; events lost: ")
      text.append(lost)
    }
  }
}
