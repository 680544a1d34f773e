// SPDX-License-Identifier: Apache-2.0
//
// What a registry's slot stands for.
//
// Guarded by `lock`: everything that is `var` here; the words' ways from live
// to dying and from destroying to free; the lists of what belongs to what; and
// the details of slots. No user code runs under it, and nothing waits under it
// (G13).
// Memory: whoever pins the registry's handle and found it live may use this;
// it is freed when the handle is claimed (Finishing.swift).

import Synchronization

package struct RegistryRecord: ~Copyable {
  package let handle: UInt64
  package let lock: Monitor
  package let history: HistoryPointer
  package let recorder: RecorderPointer
  package let callback: UInt32
  package let observer: ObserverPointer?
  package let strictness: UInt32
  /// How many emissions a thread may be inside at a time.
  package let emissionLimit: UInt32
  package let level: Atomic<UInt32>
  package let refused = Atomic<UInt64>(0)
  package let abandoned = Atomic<UInt64>(0)

  var chunks: ChunkPointer?
  var chunkCount: UInt64 = 1
  var free = FreeSlots()
  /// Dead tokens whose ender did not look for calls (G14).
  var parked = Chain()
  /// The owners of living objects, by the objects' addresses: from
  /// `owner_for_object` to the end of that owner (G18).
  var objects = NumberIndex()
  /// The first holder of each token that slots hold.
  var holders = NumberIndex()
  /// The queue on which a token's destroy is to run, until it has come there.
  var errandQueues = NumberIndex()
  var interfaces: InterfacePointer?
  var live = LiveCounts()
  var registered: UInt64 = 0
  var ended: UInt64 = 0
  var retired: UInt64 = 0

  init(
    handle: UInt64, lock: Monitor, history: HistoryPointer,
    observer: ObserverPointer?, callback: UInt32, strictness: UInt32,
    emissionLimit: UInt32, level: Level, chunk: ChunkPointer
  ) {
    self.handle = handle
    self.lock = lock
    self.history = history
    self.observer = observer
    recorder = history.recorder
    self.callback = callback
    self.strictness = strictness
    self.emissionLimit = emissionLimit
    self.level = Atomic(level.rawValue)
    chunks = chunk
  }
}

package typealias RegistryPointer = UnsafeMutablePointer<RegistryRecord>

/// How many of each kind are live.
struct LiveCounts {
  var tokens: UInt64 = 0
  var owners: UInt64 = 0
  var leases: UInt64 = 0
  var slots: UInt64 = 0
  var signals: UInt64 = 0
  var queues: UInt64 = 0
  var sessions: UInt64 = 0
  var tasks: UInt64 = 0
  var replies: UInt64 = 0
  var thunks: UInt64 = 0

  mutating func change(_ kind: HandleKind?, by difference: Int) {
    let difference = UInt64(bitPattern: Int64(difference))
    switch kind {
    case .token: tokens &+= difference
    case .owner: owners &+= difference
    case .lease: leases &+= difference
    case .slot: slots &+= difference
    case .signal: signals &+= difference
    case .queue: queues &+= difference
    case .session: sessions &+= difference
    case .task: tasks &+= difference
    case .reply: replies &+= difference
    case .thunk: thunks &+= difference
    case .registry, .list, nil: break
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  var index: UInt32 { Handle.index(of: pointee.handle) }

  var level: Level {
    Level(rawValue: pointee.level.load(ordering: .relaxed)) ?? .calls
  }

  /// Whether its end has begun.
  ///
  /// It changes only under the lock.
  var isClosing: Bool {
    Table.knownSlot(at: index).pointee.mode.load(ordering: .relaxed)
      & Mode.closing != 0
  }

  /// Takes a free slot, and grows the table if there is none.
  ///
  /// Takes and gives back the lock, which the caller holds, around growing. Nil
  /// with the status.
  func takeSlot(
    status: inout Status
  ) -> (index: UInt32, generation: UInt32)? {
    while true {
      if let slot = pointee.free.take() { return slot }
      pointee.lock.unlock()
      let chunk = Table.takeChunk(status: &status)
      pointee.lock.lock()
      guard let chunk else { return nil }
      chunk.pointee.recorder = pointee.recorder
      chunk.pointee.registry.store(pointee.handle, ordering: .releasing)
      chunk.pointee.next = pointee.chunks
      pointee.chunks = chunk
      pointee.chunkCount += 1
      pointee.free.add(chunk, skipping: 0)
    }
  }

  /// Frees a slot for good.
  ///
  /// The lock is held.
  func freeSlot(_ index: UInt32, slot: SlotPointer, handle: UInt64) {
    let isReusable = pointee.free.add(
      index, slot: slot, usedGeneration: Handle.generation(of: handle))
    if !isReusable { pointee.retired += 1 }
  }
}
