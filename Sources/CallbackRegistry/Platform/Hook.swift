// SPDX-License-Identifier: Apache-2.0

#if CBR_TEST_HOOKS
  import CPlatform
#endif

/// Points at which a test can step in, to drive one exact interleaving.
///
/// They are compiled in for tests only. The names are the steps of
/// `Tests/Model`.
package enum Hook: Int32 {
  case enterPinned = 1
  case enterChecked = 2
  case leaveCleared = 3
  case leaveChecked = 4
  case endMarked = 5
  case endFenced = 6
  case endScanned = 7
  case endDrained = 8
  case tryScanned = 9
  case tryClaimed = 10
  case destroyed = 11
  case leaseAdded = 12
  case leaseDropped = 13
  case registerAllocated = 14
  case registerPublished = 15
  case slotFreed = 16
  case tableGrown = 17
  case threadEnded = 18
  case waitBegan = 19
  case waitWoken = 20
  case consumedMarked = 21
  case parked = 22
  case ringFull = 23
  case enterTimed = 24
  case batchBegan = 25
  case batchWritten = 26
  case batchCommitted = 27
  case logCopied = 28
  case ringsRead = 29
  case ringsEnded = 30
  case ringsCommitted = 31
  case ringsRemoved = 32
  case segmentAdded = 33
  case rowsPurged = 34
  case listRead = 35
  case messagePosted = 36
  case posterBlocked = 37
  case messageTaken = 38
  case deliveryEnding = 39
  case messageDropped = 40
  case alarmTaken = 41
  case thunkPinned = 42
  case logFound = 43

  @inline(__always)
  package func reached(_ handle: UInt64) {
    #if CBR_TEST_HOOKS
      cbr_hook(rawValue, handle)
    #endif
  }
}
