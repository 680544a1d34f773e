// SPDX-License-Identifier: Apache-2.0

/// What becomes of an event for which its ring has no room.
///
/// That the oldest makes room for it is not among them: rings hold events of
/// both classes, and calls must not cost other events.
package enum OverflowPolicy: UInt32 {
  /// It waits for room, and is counted when there is none in time.
  case block = 1
  /// A call is counted at its token, exactly; other events cannot be.
  case count = 2
  /// It is lost at once, and counted as that.
  case drop = 3
  /// The process is aborted.
  case abort = 4
}
