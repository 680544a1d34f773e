// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import CallbackRegistry

/// A whole file of rings, damaged in one place at a time.
///
/// Whatever is wrong stops the process, and so does a recovery that takes ten
/// seconds (J9).
private struct Damage {
  private var sandbox = Sandbox()
  private var image = Seed().rings

  /// Makes the file that of a new run.
  private mutating func begin() {
    image.set(run: sandbox.beginRun())
    image.repairCheck()
  }

  /// Else nothing else that is found here means anything.
  mutating func recoverWhole() {
    begin()
    let report = sandbox.judge(image)
    guard report.recovered == 1, sandbox.events() == image.events,
      image.events.count > 5
    else {
      fatalError("\(report), \(sandbox.events()), not \(image.events)")
    }
  }

  /// Turns over each byte that means anything, and some that do not.
  mutating func turnEachByte() {
    for place in image.places {
      begin()
      image.bytes[place] ^= 0xFF
      judge()
      image.bytes[place] ^= 0xFF
    }
  }

  /// The same in what a history has been written from: the first ring's area.
  mutating func turnEachByteOfWritten() {
    let area = RingFileImage.firstArea
    for place in area..<(area + 136) {
      begin()
      sandbox.noteWritten(position: 8, events: 1)
      image.bytes[place] ^= 0xFF
      judge()
      image.bytes[place] ^= 0xFF
    }
  }

  mutating func cutEverywhere() {
    for length in stride(from: image.bytes.count, to: 0, by: -64) {
      image.cut(to: length - 64)
      // A shorter one is nobody's, whatever it says.
      if length > RingFileImage.firstArea { begin() }
      judge()
    }
  }

  private func judge() {
    alarm(10)
    sandbox.judge(image)
    alarm(0)
  }

  func end() { sandbox.remove() }
}

@c(fuzz_damage)
package func fuzzDamage() -> Int32 {
  var damage = Damage()
  damage.recoverWhole()
  damage.turnEachByte()
  damage.turnEachByteOfWritten()
  damage.cutEverywhere()
  damage.end()
  print("4 passed, 0 failed")
  return 0
}
