// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Foundation
import Testing

private typealias Compare = @convention(c) (Int32, Int32) -> Int32
private typealias Compares =
  @convention(c) (UnsafeRawPointer?, UnsafeRawPointer?) -> Int32

/// As an enumeration of C's comes to Swift.
private struct Colour: CValue, Equatable {
  let rawValue: UInt32
  static let red = Colour(rawValue: 1)
  static let blue = Colour(rawValue: 2)
  static var typeInC: CType { .uint32 }
}

/// One of Swift's, which is of another size.
private enum Shade: UInt32, CValue {
  case dark = 1
  case light = 2
  static var typeInC: CType { .uint32 }
}

/// One that is not what it says.
private struct Wrong: CValue {
  var bytes: (UInt64, UInt64) = (0, 0)
  static var typeInC: CType { .int32 }
}

@Suite("Thunks")
struct ThunkTests {
  private let registry: Registry
  private let tracker = Tracker()

  init() throws { registry = try Registry() }

  @Test("A closure is a C function, and its default afterwards (G29)")
  func lives() throws {
    let function: Compare
    let handle: UInt64
    do {
      let thunk = try registry.thunk("compare", default: 42) {
        [object = tracker.make()] (left: Int32, right: Int32) -> Int32 in
        object.touch()
        return left - right
      }
      handle = thunk.handle
      function = try thunk.function(as: Compare.self)
      #expect(function(5, 3) == 2)
      #expect(function(-5, 3) == -8)
      #expect(thunk.isLive)
      #expect(tracker.liveCount == 1)
    }
    #expect(tracker.liveCount == 0)
    #expect(function(5, 3) == 42)
    #expect(function(5, 3) == 42)
    #expect(try registry.statistics.refused == 2)
    #expect(try registry.leaks().isEmpty)
    try registry.flush(waiting: .seconds(3_600))
    let story = Explanations.story(of: handle)
    #expect(story.contains("compare"))
    #expect(story.contains("ThunkTests.swift"))
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    #expect(function(5, 3) == 42)
  }

  @Test("It sorts as qsort's comparison, with pointers of C's")
  func sorts() throws {
    let thunk = try registry.thunk("compare", default: 0) {
      (left: UnsafeRawPointer?, right: UnsafeRawPointer?) -> Int32 in
      guard let left, let right else { return 0 }
      let (one, two) = (left.load(as: Int32.self), right.load(as: Int32.self))
      return one < two ? -1 : one > two ? 1 : 0
    }
    var numbers: [Int32] = [5, -3, 12, 0, 7, -9]
    let compare = try thunk.function(as: Compares.self)
    qsort(&numbers, numbers.count, 4, compare)
    #expect(numbers == [-9, -3, 0, 5, 7, 12])
    #expect(thunk.end(waiting: .seconds(3_600)).isEnded)
    #expect(thunk.end().isAlready)
    qsort(&numbers, numbers.count, 4, compare)
    #expect(numbers.sorted() == [-9, -3, 0, 5, 7, 12])
    #expect(try registry.statistics.refused > 0)
  }

  @Test("It may be asked for as a function that is Sendable")
  func isSendable() throws {
    let thunk = try registry.thunk("compare", default: 42) {
      (left: Int32, right: Int32) -> Int32 in left - right
    }
    typealias Sent = @Sendable @convention(c) (Int32, Int32) -> Int32
    typealias Others = @Sendable @convention(c) (Int32) -> Int32
    #expect(try thunk.function(as: Sent.self)(5, 3) == 2)
    let error = thrown { _ = try thunk.function(as: Others.self) }
    #expect(error?.name == "wrongType")
  }

  @Test("Every type arrives and is returned as it is")
  func types() throws {
    try passes(Bool.self, true, false)
    try passes(Int8.self, -128, 127)
    try passes(UInt8.self, 255, 1)
    try passes(Int16.self, .min, .max)
    try passes(UInt16.self, .max, 1)
    try passes(Int32.self, .min, .max)
    try passes(UInt32.self, .max, 1)
    try passes(Int64.self, .min, .max)
    try passes(UInt64.self, .max, 1)
    try passes(Int.self, .min, .max)
    try passes(UInt.self, .max, 1)
    try passes(Float.self, 1.5, -.infinity)
    try passes(Double.self, 1.5e300, -0.1)
    let thunk = try registry.thunk("colour", default: Colour.red) {
      (colour: Colour) -> Colour in colour == .red ? .blue : .red
    }
    let function = cbr_thunk_function(thunk.handle)
    typealias InC = @convention(c) (UInt32) -> UInt32
    #expect(unsafeBitCast(function, to: InC.self)(1) == 2)
    #expect(
      thrown {
        _ = try registry.thunk("shade", default: Shade.dark) { .light }
      }?
      .name == "invalid")
  }

  private func passes<Value: CValue & Equatable & Sendable>(
    _ type: Value.Type, _ value: Value, _ otherwise: Value
  ) throws {
    let thunk = try registry.thunk("same", default: otherwise) {
      (before: Double, value: Value, behind: Int8) -> Value in
      before == 0.5 && behind == -7 ? value : otherwise
    }
    let call: () throws -> Value? = {
      switch value {
      case let value as Bool:
        try thunk.function(
          as: (@convention(c) (Double, Bool, Int8) -> Bool).self)(
            0.5, value, -7) as? Value
      case let value as Int8:
        try thunk.function(
          as: (@convention(c) (Double, Int8, Int8) -> Int8).self)(
            0.5, value, -7) as? Value
      case let value as UInt8:
        try thunk.function(
          as: (@convention(c) (Double, UInt8, Int8) -> UInt8).self)(
            0.5, value, -7) as? Value
      case let value as Int16:
        try thunk.function(
          as: (@convention(c) (Double, Int16, Int8) -> Int16).self)(
            0.5, value, -7) as? Value
      case let value as UInt16:
        try thunk.function(
          as: (@convention(c) (Double, UInt16, Int8) -> UInt16).self)(
            0.5, value, -7) as? Value
      case let value as Int32:
        try thunk.function(
          as: (@convention(c) (Double, Int32, Int8) -> Int32).self)(
            0.5, value, -7) as? Value
      case let value as UInt32:
        try thunk.function(
          as: (@convention(c) (Double, UInt32, Int8) -> UInt32).self)(
            0.5, value, -7) as? Value
      case let value as Int64:
        try thunk.function(
          as: (@convention(c) (Double, Int64, Int8) -> Int64).self)(
            0.5, value, -7) as? Value
      case let value as UInt64:
        try thunk.function(
          as: (@convention(c) (Double, UInt64, Int8) -> UInt64).self)(
            0.5, value, -7) as? Value
      case let value as Int:
        try thunk.function(
          as: (@convention(c) (Double, Int, Int8) -> Int).self)(
            0.5, value, -7) as? Value
      case let value as UInt:
        try thunk.function(
          as: (@convention(c) (Double, UInt, Int8) -> UInt).self)(
            0.5, value, -7) as? Value
      case let value as Float:
        try thunk.function(
          as: (@convention(c) (Double, Float, Int8) -> Float).self)(
            0.5, value, -7) as? Value
      case let value as Double:
        try thunk.function(
          as: (@convention(c) (Double, Double, Int8) -> Double).self)(
            0.5, value, -7) as? Value
      default: nil
      }
    }
    #expect(try call() == value)
    #expect(thunk.end().isEnded)
    #expect(try call() == otherwise)
  }

  @Test("Nothing in, nothing out; many arguments; pointers of all kinds")
  func shapes() throws {
    let counter = Counter()
    let tick = try registry.thunk("tick") { counter.increment() }
    try tick.function(as: (@convention(c) () -> Void).self)()
    #expect(counter.count == 1)
    let many = try registry.thunk("many", default: 0) {
      (
        a: Int8, b: Double, c: Int, d: Float, e: UInt16, f: Double, g: Int,
        h: Int, i: Int, j: Int32, k: Double, l: UInt8
      ) -> Double in
      let whole = Int(a) + c + Int(e) + g + h + i + Int(j) + Int(l)
      return Double(whole) + b + Double(d) + f + k
    }
    typealias Many =
      @convention(c) (
        Int8, Double, Int, Float, UInt16, Double, Int, Int, Int, Int32, Double,
        UInt8
      ) -> Double
    #expect(
      try many.function(as: Many.self)(
        -1, 0.5, 2, 0.25, 3, 0.125, 4, 5, 6, 7, 0.0625, 8)
        == 34.9375)
    let pointers = try registry.thunk("pointers", default: nil) {
      (number: UnsafeMutablePointer<Int32>, opaque: OpaquePointer?)
        -> UnsafeMutableRawPointer? in
      number.pointee += 1
      return opaque == nil ? nil : UnsafeMutableRawPointer(number)
    }
    typealias Pointers =
      @convention(c) (UnsafeMutablePointer<Int32>, OpaquePointer?) ->
      UnsafeMutableRawPointer?
    let function = try pointers.function(as: Pointers.self)
    let number = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    number.initialize(to: 5)
    defer { number.deallocate() }
    #expect(function(number, nil) == nil)
    #expect(
      function(number, OpaquePointer(number))
        == UnsafeMutableRawPointer(number))
    #expect(number.pointee == 7)
  }

  @Test("NULL where the closure takes none returns the default")
  func null() throws {
    let thunk = try registry.thunk("first", default: -1) {
      (number: UnsafePointer<Int32>) -> Int32 in number.pointee
    }
    typealias First = @convention(c) (UnsafePointer<Int32>) -> Int32
    typealias FirstInC = @convention(c) (UnsafePointer<Int32>?) -> Int32
    let function = try thunk.function(as: First.self)
    var number: Int32 = 3
    #expect(function(&number) == 3)
    #expect(unsafeBitCast(function, to: FirstInC.self)(nil) == -1)
  }

  @Test("Asking for another type is an error that names the right one (G10)")
  func mismatch() throws {
    let thunk = try registry.thunk("compare", default: 0) {
      (left: Int32, right: Int32) -> Int32 in left - right
    }
    typealias Other = @convention(c) (Int32, UInt32) -> Int32
    typealias Swifts = (Int32, Int32) -> Int32
    let error = thrown { _ = try thunk.function(as: Other.self) }
    #expect(error?.name == "wrongType")
    #expect(
      error?.explanation.sentence.contains(
        "@convention(c) (Swift.Int32, Swift.Int32) -> Swift.Int32") == true)
    #expect(
      thrown { _ = try thunk.function(as: Swifts.self) }?.name == "wrongType")
    #expect(
      thrown { _ = try thunk.function(as: UInt.self) }?.name == "wrongType")
  }

  @Test("What cannot be made takes nothing (G6)")
  func failures() throws {
    let wrong = thrown {
      _ = try registry.thunk("wrong", default: Int32(0)) {
        [object = tracker.make()] (one: Int32, two: Wrong) -> Int32 in
        object.touch()
        return one
      }
    }
    #expect(wrong?.name == "invalid")
    #expect(wrong?.explanation.sentence.contains("argument 2") == true)
    let owner = try Owner("owner", in: registry)
    _ = owner.end()
    let late = thrown {
      _ = try registry.thunk("late", owner: owner) {
        [object = tracker.make()] in object.touch()
      }
    }
    #expect(late?.name == "stale")
    let label = String(repeating: "x", count: 256)
    let long = thrown {
      _ = try registry.thunk(label) { [object = tracker.make()] in
        object.touch()
      }
    }
    #expect(long?.name == "invalid")
    #expect(tracker.madeCount == 3)
    #expect(tracker.liveCount == 0)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("It ends with its owner, and inside itself (G12, G29)")
  func ends() throws {
    let owner = try Owner("owner", in: registry)
    let thunk = try registry.thunk("owned", default: 7, owner: owner) {
      [object = tracker.make()] () -> Int32 in
      object.touch()
      return 1
    }
    let function = try thunk.function(as: (@convention(c) () -> Int32).self)
    #expect(function() == 1)
    #expect(owner.end().isEnded)
    #expect(tracker.liveCount == 0)
    #expect(function() == 7)
    #expect(!thunk.isLive)
    let later = Later<Thunk>()
    later.value = try registry.thunk("drops", default: 9) {
      [object = tracker.make()] () -> Int32 in
      later.value = nil
      object.touch()
      return 2
    }
    let drops = try #require(
      try later.value?.function(as: (@convention(c) () -> Int32).self))
    #expect(drops() == 2)
    #expect(tracker.liveCount == 0)
    #expect(drops() == 9)
  }

  @Test("C may end a thunk and its token, and not enter the closure (C14)")
  func fromC() throws {
    let thunk = try registry.thunk("closure", default: 7) { () -> Int32 in 1 }
    let function = try thunk.function(as: (@convention(c) () -> Int32).self)
    let token = try #require(
      try registry.leaks().first { $0.kind == .token }?.handle)
    var call = cbr_call()
    #expect(cbr_enter(token, &call) == CBR_E_INTERFACE)
    #expect(
      cbr_enter_typed(token, Token<Void, Int32>.typeTag, &call)
        == CBR_E_INTERFACE)
    #expect(cbr_thunk_function(thunk.handle) != nil)
    #expect(cbr_invalidate(token, 1_000) == CBR_OK)
    #expect(function() == 7)
    #expect(cbr_invalidate(thunk.handle, 1_000) == CBR_OK)
    #expect(function() == 7)
    #expect(cbr_thunk_function(thunk.handle) == nil)
  }

  @Test("A thread-bound one answers its default elsewhere; late on any thread")
  func threads() throws {
    let bound = try registry.thunk(
      "bound", default: 3, options: .threadBound
    ) { () -> Int32 in 1 }
    let function = try bound.function(as: (@convention(c) () -> Int32).self)
    #expect(function() == 1)
    let elsewhere = Counter()
    Worker {
      if function() == 3 { elsewhere.increment() }
    }.join()
    #expect(elsewhere.count == 1)
  }

  @Test("Calls race the end: each is the closure's or the default (B1, G29)")
  func races() throws {
    for _ in 0..<200 {
      let thunk = try registry.thunk("race", default: 2) {
        [object = tracker.make()] (number: Int32) -> Int32 in
        object.touch()
        return number
      }
      typealias Function = @convention(c) (Int32) -> Int32
      let function = try thunk.function(as: Function.self)
      let began = Gate()
      let callers = (0..<2).map { _ in
        Worker {
          while true {
            let answer = function(1)
            began.open()
            if answer == 2 { break }
            if answer != 1 { Issue.record("\(answer)") }
          }
        }
      }
      began.wait()
      #expect(thunk.end(waiting: .seconds(3_600)).isEnded)
      for caller in callers { caller.join() }
    }
    #expect(tracker.madeCount == 200)
    #expect(tracker.liveCount == 0)
    #expect(try registry.leaks().isEmpty)
  }
}
