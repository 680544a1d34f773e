// SPDX-License-Identifier: Apache-2.0
//
// Who gives out the addresses of thunks, for the whole process. An address is
// given out once. A block of addresses is of one signature and default result,
// a shape: so a late caller gets the right default for as long as the process
// lives, whatever has become of the thunk.
//
// Which thunk it was is known for as long as its handle stands beside its
// address: until so many others have ended as the quarantine says, and until
// all thunks of its group have, since memory is given back by pages. Groups
// wait for that in the order in which they ended.
//
// Everything here is guarded by the monitor of thunks, which is taken inside of
// a registry's lock where a thunk is freed, and never the other way round. A
// forked child leaves its parent's pool alone and makes its own: what it has
// inherited goes on answering.
// Tried to break by: Tests/C (thunks.c, quarantine.c).

import CPlatform
import Synchronization

/// A signature with its default result, and where its next address is.
struct ThunkShape {
  let shape: OpaquePointer
  let next: UnsafeMutablePointer<ThunkShape>?
  var block: ThunkBlockPointer?
  /// Addresses of the block that have been given out.
  var used: UInt32
}

typealias ThunkShapePointer = UnsafeMutablePointer<ThunkShape>

/// A block of addresses, until all of its groups are forgotten; followed by
/// them.
struct ThunkBlock {
  let memory: UnsafeMutableRawPointer
  var remembered: UInt32
}

typealias ThunkBlockPointer = UnsafeMutablePointer<ThunkBlock>

/// Addresses whose handles are forgotten together.
struct ThunkGroup {
  let block: ThunkBlockPointer
  let first: UInt32
  /// How many of its thunks have ended.
  var ended: UInt32 = 0
  /// How many of all had, when all of its own had.
  var endedAt: UInt64 = 0
  var next: ThunkGroupPointer?
}

typealias ThunkGroupPointer = UnsafeMutablePointer<ThunkGroup>

extension UnsafeMutablePointer where Pointee == ThunkBlock {
  fileprivate static func make(
    _ memory: UnsafeMutableRawPointer, groups: UInt32
  ) -> ThunkBlockPointer? {
    let bytes = Memory.allocateBytes(
      MemoryLayout<ThunkBlock>.stride
        + Int(groups) * MemoryLayout<ThunkGroup>.stride)
    guard let bytes else { return nil }
    let block = bytes.bindMemory(to: ThunkBlock.self, capacity: 1)
    block.initialize(to: ThunkBlock(memory: memory, remembered: groups))
    for index in 0..<groups {
      block.group(index).initialize(
        to: ThunkGroup(block: block, first: index * cbr_thunk_group()))
    }
    return block
  }

  fileprivate func group(_ index: UInt32) -> ThunkGroupPointer {
    (UnsafeMutableRawPointer(self) + MemoryLayout<ThunkBlock>.stride)
      .assumingMemoryBound(to: ThunkGroup.self) + Int(index)
  }
}

/// An address that has been given out.
struct ThunkPlace {
  let block: ThunkBlockPointer
  let index: UInt32

  var address: UnsafeRawPointer? {
    UnsafeRawPointer(cbr_thunk_address(block.pointee.memory, index))
  }

  /// Says whose the address is, before anybody has it.
  func set(_ handle: UInt64) {
    cbr_thunk_set(block.pointee.memory, index, handle)
  }
}

struct ThunkPool {
  static let shapeLimit: UInt32 = 2048
  static let blockLimit: UInt32 = 8192
  static let quarantine: UInt64 = 262_144

  fileprivate let process: Int32
  fileprivate let quarantine: UInt64
  fileprivate var shapes: ThunkShapePointer?
  fileprivate var shapeCount: UInt32 = 0
  fileprivate var blockCount: UInt32 = 0
  /// Thunks that have ended.
  fileprivate var ended: UInt64 = 0
  fileprivate var oldest: ThunkGroupPointer?
  fileprivate var newest: ThunkGroupPointer?
}

typealias ThunkPoolPointer = UnsafeMutablePointer<ThunkPool>

extension ThunkPool {
  /// Takes an address for a thunk of a shape.
  static func take(
    _ codes: SignatureCodes, count: UInt32, otherwise: UnsafeRawPointer?,
    thread: ThreadPointer
  ) throws(Status) -> ThunkPlace {
    guard cbr_thunks_exist() else {
      throw thread.unsupported { text in
        text.append("there is no code for thunks on this processor")
      }
    }
    let made = cbr_shape_create(
      codes.bytes, codes.count, count, codes.context, otherwise)
    guard let made else { throw .noMemory }
    let taken: Result<ThunkPlace, Status> = Monitor.thunks.locked {
      guard let pool = ofProcess() else {
        cbr_shape_destroy(made)
        return .failure(.noMemory)
      }
      pool.forgetDue()
      var status = Status.ok
      guard let shape = pool.shape(of: made, status: &status),
        let place = pool.take(shape, status: &status)
      else { return .failure(status) }
      return .success(place)
    }
    switch taken {
    case .success(let place): return place
    case .failure(.limit):
      throw thread.toThrow(
        thread.fail(.limit) { text in
          text.append("the process has used up its addresses for thunks")
        })
    case .failure(.unsupported):
      throw thread.unsupported { text in
        text.append("this system executes no code that a program has made")
      }
    case .failure(let status): throw status
    }
  }

  /// A thunk has ended: nobody finds its address any more, and some may have
  /// it.
  static func release(_ place: ThunkPlace) {
    Monitor.thunks.locked {
      let state = ProcessState.shared.pointee.thunks.load(ordering: .relaxed)
      ThunkPoolPointer(bitPattern: state)?.release(place)
    }
  }

  private static func ofProcess() -> ThunkPoolPointer? {
    let state = ProcessState.shared
    let process = cbr_process_number()
    let known = ThunkPoolPointer(
      bitPattern: state.pointee.thunks.load(ordering: .relaxed))
    if let known, known.pointee.process == process { return known }
    guard let made = Memory.allocate(ThunkPool.self) else { return nil }
    made.initialize(
      to: ThunkPool(process: process, quarantine: chosenQuarantine()))
    // Before the first address is given out.
    cbr_thunks_prepare({ ThunkCalls.begin($0, $1) }, { ThunkCalls.end($0, $1) })
    state.pointee.thunks.store(UInt(bitPattern: made), ordering: .relaxed)
    return made
  }

  private static func chosenQuarantine() -> UInt64 {
    guard let setting = Process.setting("CBR_THUNK_QUARANTINE"),
      let chosen = Process.number(setting)
    else { return quarantine }
    return chosen
  }
}

extension UnsafeMutablePointer where Pointee == ThunkPool {
  /// The shape that is the same as one that was just made, which becomes the
  /// pool's or is freed.
  fileprivate func shape(
    of made: OpaquePointer, status: inout Status
  ) -> ThunkShapePointer? {
    var each = pointee.shapes
    while let shape = each {
      if cbr_shape_is_same(shape.pointee.shape, made) {
        cbr_shape_destroy(made)
        return shape
      }
      each = shape.pointee.next
    }
    let isFull = pointee.shapeCount == ThunkPool.shapeLimit
    guard !isFull, let shape = Memory.allocate(ThunkShape.self) else {
      cbr_shape_destroy(made)
      status = isFull ? .limit : .noMemory
      return nil
    }
    shape.initialize(
      to: ThunkShape(shape: made, next: pointee.shapes, block: nil, used: 0))
    pointee.shapes = shape
    pointee.shapeCount += 1
    return shape
  }

  fileprivate func take(
    _ shape: ThunkShapePointer, status: inout Status
  ) -> ThunkPlace? {
    let count = UInt32(CBR_THUNKS_PER_BLOCK)
    if shape.pointee.block == nil || shape.pointee.used == count {
      guard let block = addBlock(of: shape, status: &status) else {
        return nil
      }
      shape.pointee.block = block
      shape.pointee.used = 0
    }
    guard let block = shape.pointee.block else { return nil }
    let index = shape.pointee.used
    let group = cbr_thunk_group()
    guard cbr_thunk_fill(shape.pointee.shape, (index / group + 1) * group)
    else {
      status = .noMemory
      return nil
    }
    shape.pointee.used += 1
    return ThunkPlace(block: block, index: index)
  }

  private func addBlock(
    of shape: ThunkShapePointer, status: inout Status
  ) -> ThunkBlockPointer? {
    guard pointee.blockCount < ThunkPool.blockLimit else {
      status = .limit
      return nil
    }
    let groups = UInt32(CBR_THUNKS_PER_BLOCK) / cbr_thunk_group()
    var isRefused = false
    let memory = cbr_thunk_block_map(shape.pointee.shape, &isRefused)
    guard let memory else {
      status = isRefused ? .unsupported : .noMemory
      return nil
    }
    guard let block = ThunkBlockPointer.make(memory, groups: groups) else {
      cbr_thunk_block_unmap(shape.pointee.shape, memory)
      status = .noMemory
      return nil
    }
    pointee.blockCount += 1
    return block
  }

  fileprivate func release(_ place: ThunkPlace) {
    pointee.ended += 1
    let group = place.block.group(place.index / cbr_thunk_group())
    group.pointee.ended += 1
    guard group.pointee.ended == cbr_thunk_group() else { return }
    group.pointee.endedAt = pointee.ended
    if let newest = pointee.newest {
      newest.pointee.next = group
    } else {
      pointee.oldest = group
    }
    pointee.newest = group
  }

  /// Gives back what has been in quarantine for long enough.
  fileprivate func forgetDue() {
    while let group = pointee.oldest,
      pointee.ended - group.pointee.endedAt >= pointee.quarantine
    {
      pointee.oldest = group.pointee.next
      if pointee.oldest == nil { pointee.newest = nil }
      let block = group.pointee.block
      cbr_thunk_forget(
        block.pointee.memory, group.pointee.first, cbr_thunk_group())
      block.pointee.remembered -= 1
      // The block that addresses are taken from has a group that has not ended.
      if block.pointee.remembered == 0 { Memory.release(block) }
    }
  }
}
