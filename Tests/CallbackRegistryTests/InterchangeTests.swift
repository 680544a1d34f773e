// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CInterchange
import CallbackRegistry
import Testing

@Suite("Between C and Swift")
struct InterchangeTests {
  @Test("C calls a Swift closure by its handle")
  func fromC() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token = try registry.register("scale") {
      [object = tracker.make()] (point: interchange_point) -> Double in
      object.touch()
      return point.x * 10 + Double(point.weight)
    }.keep()
    let tag = Token<interchange_point, Double>.typeTag
    var input = interchange_point(x: 1.5, weight: 3)
    var output = 0.0
    #expect(
      interchange_call(token.handle, tag, &input, &output) == CBR_OK)
    #expect(output == 18)
    // Another tag is refused before anything is touched (G10).
    let other = Token<Double, Double>.typeTag
    #expect(
      interchange_call(token.handle, other, &input, &output)
        == CBR_E_INTERFACE)
    // Missing addresses are an answer, not a trap.
    #expect(
      interchange_call(token.handle, tag, nil, &output) == CBR_E_INVALID)
    #expect(
      interchange_call(token.handle, tag, &input, nil) == CBR_E_INVALID)
    #expect(cbr_is_live(token.handle))
    #expect(
      cbr_invalidate_wait(token.handle, 1_000, .max) == CBR_OK)
    #expect(tracker.liveCount == 0)
    #expect(!token.isLive)
    #expect(
      interchange_call(token.handle, tag, &input, &output) == CBR_E_STALE)
    #expect(try registry.story(of: token).contains("reason 1000"))
  }

  @Test("An owner that C has made is taken up, and is C's to end (G9)")
  func ownerOfC() throws {
    let registry = try Registry()
    var made: cbr_owner = 0
    #expect(cbr_owner_create(registry.handle, "of C", &made) == CBR_OK)
    let token: Token<Void, Void>
    do {
      let owner = try #require(Owner(handle: made))
      #expect(owner.registry.handle == registry.handle)
      token = try registry.register("of Swift", owner: owner) {}.keep()
    }
    #expect(token.isLive)
    #expect(cbr_invalidate(made, 1) == CBR_OK)
    #expect(!token.isLive)
    #expect(Owner(handle: made) == nil)
    #expect(Owner(handle: token.handle) == nil)
    #expect(Owner(handle: registry.handle) == nil)
    #expect(Owner(handle: 0) == nil)
  }

  @Test("C calls a Swift closure from and to nothing")
  func nothingFromC() throws {
    let registry = try Registry()
    let counter = Counter()
    let token = try registry.register("tick") { counter.increment() }.keep()
    #expect(
      interchange_call(token.handle, Token<Void, Void>.typeTag, nil, nil)
        == CBR_OK)
    #expect(counter.count == 1)
  }

  @Test("C is told when the object of a Swift closure has died")
  func deadObjectFromC() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token: Token<Int32, Int32>
    do {
      let object = tracker.make()
      token = try registry.register("weak", owner: object) {
        (object, number: Int32) in
        object.touch()
        return number + 1
      }.keep()
      var number: Int32 = 1
      var answer: Int32 = 0
      #expect(
        interchange_call(
          token.handle, Token<Int32, Int32>.typeTag, &number, &answer)
          == CBR_OK)
      #expect(answer == 2)
      withExtendedLifetime(object) {}
    }
    var number: Int32 = 1
    var answer: Int32 = 0
    #expect(
      interchange_call(
        token.handle, Token<Int32, Int32>.typeTag, &number, &answer)
        == CBR_E_STALE)
    #expect(answer == 0)
    #expect(!token.isLive)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("Swift calls a C function by its handle")
  func toC() throws {
    let registry = try Registry()
    var handle: UInt64 = 0
    // Memory that stays where it is: the registration keeps its address.
    let seen = UnsafeMutablePointer<interchange_seen>.allocate(capacity: 1)
    seen.initialize(to: interchange_seen())
    defer { seen.deallocate() }
    #expect(
      interchange_register(
        registry.handle, Token<interchange_point, Double>.typeTag, seen,
        &handle) == CBR_OK)
    let token = try #require(
      Token<interchange_point, Double>(handle: handle))
    #expect(try token.call(interchange_point(x: 2.5, weight: 4)) == 10)
    #expect(seen.pointee.calls == 1)
    #expect(seen.pointee.point.x == 2.5)
    #expect(Token<interchange_point, Float>(handle: handle) == nil)
    #expect(token.end(waiting: .seconds(3_600)).isEnded)
    #expect(seen.pointee.destroyed == 1)
    let error = thrown {
      _ = try token.call(interchange_point())
    }
    #expect(error?.name == "stale")
    #expect(seen.pointee.calls == 1)
  }

  @Test("A C function's error is thrown")
  func errorFromC() throws {
    let registry = try Registry()
    for (answer, name) in [
      (0, nil), (Int32(CBR_E_FULL.rawValue), "full"),
      (Int32(CBR_E_USER.rawValue) - 7, "failed"), (77, "failed"),
    ] as [(Int32, String?)] {
      var handle: UInt64 = 0
      #expect(
        interchange_register_answer(
          registry.handle, Token<Void, Void>.typeTag, answer, &handle)
          == CBR_OK)
      let token = try #require(Token<Void, Void>(handle: handle))
      let error = thrown { try token.call() }
      #expect(error?.name == name)
      if case .failed(let status, let explanation)? = error {
        #expect(status == answer)
        #expect(explanation.handle == handle)
      }
      #expect(token.end(waiting: .zero).isEnded)
    }
  }

  @Test("A C function of another signature is no token of Swift's (C14)")
  func untagged() throws {
    let registry = try Registry()
    var handle: UInt64 = 0
    #expect(
      interchange_register_untagged(registry.handle, &handle) == CBR_OK)
    #expect(Token<Void, Void>(handle: handle) == nil)
    #expect(try registry.leaks().map(\.label) == ["untagged"])
    // And C cannot enter Swift's without the tag.
    let token = try registry.register("tagged") {}.keep()
    var call = cbr_call()
    #expect(cbr_enter(token.handle, &call) == CBR_E_INTERFACE)
    #expect(cbr_invalidate(handle, 1) == CBR_OK)
  }

  @Test("C's owners and leases hold for Swift's closures")
  func leases() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let owner = try Owner(in: registry)
    let token = try registry.register("leased", owner: owner) {
      [object = tracker.make()] in object.touch()
    }.keep()
    var lease: UInt64 = 0
    #expect(cbr_lease(token.handle, &lease) == CBR_OK)
    #expect(try registry.leaks().map(\.kind).contains(.lease))
    #expect(cbr_invalidate(owner.handle, 1) == CBR_PENDING)
    #expect(tracker.liveCount == 1)
    #expect(token.end(waiting: .zero).isTimedOut)
    #expect(cbr_lease_end(lease) == CBR_OK)
    #expect(tracker.liveCount == 0)
    #expect(!owner.isLive)
  }

  @Test("A registry opened by C serves Swift, which does not close it")
  func registryFromC() throws {
    var handle: UInt64 = 0
    #expect(cbr_registry_open(nil, &handle) == CBR_OK)
    let token: Token<Void, Int>
    do {
      let registry = try #require(Registry(handle: handle))
      token = try registry.register("guest") { 5 }.keep()
    }
    #expect(try token.call() == 5)
    #expect(cbr_registry_close(handle, .max) == CBR_OK)
    #expect(!token.isLive)
  }
}
