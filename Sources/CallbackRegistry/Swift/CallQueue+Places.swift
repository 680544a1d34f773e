// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension CallQueue {
    /// Where a queue's calls are delivered.
    public struct Place: Sendable {
      let hasThread: Bool
      var isPumped: Bool { !hasThread }

      /// On a thread of the library's, one for the queue.
      public static let thread = Place(hasThread: true)
      /// Where the program calls ``CallQueue/run(limit:)``.
      public static let pumped = Place(hasThread: false)
    }
  }
#endif
