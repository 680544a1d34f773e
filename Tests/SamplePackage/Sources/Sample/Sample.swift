// SPDX-License-Identifier: Apache-2.0
//
// A thermometer that screens look at: a registry, a token that is handed
// around, an owner, and an object that callbacks are registered to.

import CallbackRegistry

final class Screen: Sendable {
  let name: String

  init(_ name: String) { self.name = name }

  func show(_ degrees: Double) -> String { "\(name): \(degrees)" }
}

/// Holds nothing of what it calls.
struct Thermometer {
  private var screens: [Token<Double, String>] = []

  mutating func add(_ screen: Token<Double, String>) { screens.append(screen) }

  /// Tells all screens that are there, and forgets the others.
  mutating func measure(_ degrees: Double) {
    screens.removeAll { screen in
      do throws(RegistryError) {
        print(try screen.call(degrees))
        return false
      } catch .stale(let explanation) {
        print(explanation.handle == screen.handle ? "gone" : "another one")
        return true
      } catch {
        print(error)
        return true
      }
    }
  }
}

@main
struct Sample {
  static func main() throws(RegistryError) {
    let registry = try Registry(label: "sample")
    var thermometer = Thermometer()

    let room = try Owner("room", in: registry)
    thermometer.add(
      try registry.register("wall", owner: room) { (degrees: Double) in
        "wall: \(degrees)"
      }.keep())
    var screen: Screen? = Screen("desk")
    if let screen {
      thermometer.add(
        try registry.register("desk", owner: screen) {
          (screen, degrees: Double) in screen.show(degrees)
        }.keep())
    }

    thermometer.measure(20.5)
    screen = nil
    thermometer.measure(21)
    print(room.end(waiting: .seconds(1)))
    thermometer.measure(21.5)
    print(registry.close())
  }
}
