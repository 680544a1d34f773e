// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// One story, told to both sides in the same words.
struct Script: Sendable {
  let name: String
  /// What our side has to answer, by the header.
  let expected: String
  /// Whether threads race, so that no number of runs shows all outcomes.
  let races: Bool
  let foundation: @Sendable () -> String
  let ours: @Sendable () -> String

  init(
    _ name: String, expected: String, races: Bool = false,
    play: @escaping @Sendable (any Centre) -> String
  ) {
    self.name = name
    self.expected = expected
    self.races = races
    foundation = { play(FoundationCentre()) }
    ours = { play(OurCentre()) }
  }

  init(
    _ name: String, expected: String, races: Bool = false,
    play: @escaping @Sendable (any Stage) -> String
  ) {
    self.name = name
    self.expected = expected
    self.races = races
    foundation = { play(FoundationStage()) }
    ours = { play(OurStage()) }
  }
}

/// What has been told so far, in letters.
final class Told: Sendable {
  private let letters = Mutex("")

  var text: String { letters.withLock { $0 } }

  func add(_ letter: Character) {
    letters.withLock { $0.append(letter) }
  }

  func count(_ letter: Character) -> Int {
    text.count { $0 == letter }
  }

  /// Waits until no letter has come for a second.
  func settle() {
    var before = ""
    repeat {
      before = text
      Thread.sleep(forTimeInterval: 1)
    } while text != before
  }
}

/// A value that several threads change.
final class Shared<Value: Sendable>: Sendable {
  private let value: Mutex<Value>

  init(_ value: Value) {
    self.value = Mutex(value)
  }

  var now: Value { value.withLock { $0 } }

  func set(_ new: Value) {
    value.withLock { $0 = new }
  }

  /// Gives the value away, and keeps another one.
  func exchange(_ new: Value) -> Value {
    value.withLock { kept in
      defer { kept = new }
      return kept
    }
  }
}

/// Waits until something is so, for five seconds at most.
@discardableResult
func wait(until isSo: () -> Bool) -> Bool {
  for _ in 0..<1000 {
    if isSo() { return true }
    Thread.sleep(forTimeInterval: 0.005)
  }
  return isSo()
}

func times(_ count: Int) -> String {
  switch count {
  case 0: "never"
  case 1: "once"
  case 2: "twice"
  default: "\(count) times"
  }
}
