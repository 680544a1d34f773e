// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// The library's part in the life of the process and of its threads.
package enum Process {
  /// The calling thread's record; made at its first use of the library.
  ///
  /// Nil without memory.
  @inline(__always)
  package static func currentThread() -> ThreadPointer? {
    ThreadPointer.current ?? newThread()
  }

  @inline(never)
  private static func newThread() -> ThreadPointer? {
    start()
    return ThreadPointer.attach()
  }

  /// A setting from the environment.
  static func setting(_ name: StaticString) -> UnsafePointer<CChar>? {
    cbr_setting(name.characters)
  }

  private static func start() {
    let state = ProcessState.shared
    if state.pointee.isStarted.load(ordering: .acquiring) { return }
    cbr_platform_start(
      { record in Process.threadEnded(record) }, { Process.hasForked() },
      { Process.forked() }, { Process.exiting() })
    Monitor.table.locked {
      guard !state.pointee.isStarted.load(ordering: .relaxed) else { return }
      state.pointee.firstGeneration.store(
        UInt32(truncatingIfNeeded: cbr_random()), ordering: .relaxed)
      if let setting = setting("CBR_TEST_GENERATIONS"),
        let limit = number(setting)
      {
        state.pointee.generationLimit.store(
          UInt32(clamping: limit), ordering: .relaxed)
      }
      #if CBR_TEST_HOOKS
        // As if all but so many chunks had been used.
        if let setting = setting("CBR_TEST_CHUNKS"),
          let left = number(setting)
        {
          state.pointee.chunkCount.store(
            Table.chunkLimit - UInt32(clamping: left), ordering: .relaxed)
        }
      #endif
      state.pointee.isStarted.store(true, ordering: .releasing)
    }
  }

  /// A thread ends: the calls that it never left are abandoned, so that they
  /// hold nobody up.
  private static func threadEnded(_ record: UnsafeMutableRawPointer?) {
    guard let thread = record?.assumingMemoryBound(to: ThreadRecord.self) else {
      return
    }
    Hook.threadEnded.reached(Handle.none)
    // The system has cleared its key; the library still knows the thread. A
    // destroy that runs now may end the thread again: then the system comes
    // back here for what is left.
    _ = cbr_thread_on_exit(record)
    Leaving.unwind(thread, to: 0, cause: AbandonCause.threadEnded)
    _ = cbr_thread_on_exit(nil)
    thread.giveUpCells()
    thread.detach()
  }

  /// In a process that has forked: each history that has recorded something is
  /// told.
  private static func hasForked() {
    guard let thread = ThreadPointer.current else { return }
    Histories.visitOpen { history in
      let recorder = history.recorder
      guard recorder.firstRing != nil, let ring = thread.ring(of: recorder)
      else { return }
      recorder.record(.forked, in: ring, handle: Handle.none)
    }
  }

  /// In a forked child: nothing of the parent's is used again.
  ///
  /// The chunks stay where they are, but no handle finds them; locks, thread
  /// records and histories are left behind. Only the calling thread exists
  /// here.
  private static func forked() {
    let state = ProcessState.shared
    // A chunk that was being added when fork happened counts, too.
    let chunks = min(
      state.pointee.chunkCount.load(ordering: .relaxed) + 1,
      Handle.slotLimit / Chunk.slotCount)
    for chunk in 0..<chunks { cbr_directory_set(chunk, nil) }
    state.pointee.chunkCount.store(chunks, ordering: .relaxed)
    state.pointee.inheritedChunks.store(chunks, ordering: .relaxed)
    state.pointee.freeChunks = nil
    state.pointee.threads.store(0, ordering: .relaxed)
    state.pointee.threadCount.store(0, ordering: .relaxed)
    state.pointee.waiters.store(0, ordering: .relaxed)
    state.pointee.sharedRegistry.store(0, ordering: .relaxed)
    cbr_thread_set(nil)
    _ = cbr_thread_on_exit(nil)
    Histories.forgetAfterFork()
  }

  private static func exiting() {
    Audit.recordAllCounts()
    Histories.flushAtExit()
  }

  /// A number in decimal digits, the greatest there is where it is greater;
  /// nil for any other text.
  static func number(_ text: UnsafePointer<CChar>) -> UInt64? {
    var value: UInt64 = 0
    var index = 0
    while text[index] != 0 {
      guard text[index] >= 48, text[index] <= 57 else { return nil }
      let tenfold = value.multipliedReportingOverflow(by: 10)
      let sum = tenfold.partialValue.addingReportingOverflow(
        UInt64(text[index] - 48))
      value = tenfold.overflow || sum.overflow ? .max : sum.partialValue
      index += 1
    }
    return index > 0 ? value : nil
  }
}
