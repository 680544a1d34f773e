// SPDX-License-Identifier: Apache-2.0
// swift run Quickstart
import CallbackRegistry

final class Greeter: Sendable {
  let greeting = "Good morning"

  func greet(_ name: String) -> Int {
    print("\(greeting), \(name)!")
    return greeting.count
  }
}

// Query it with sqlite3.
let registry = try Registry(history: .file("quickstart.history"))

// Registered to an object, which is held weakly, and strongly for each call.
// A token is a number: copy it, keep it, it never dangles.
var greeter: Greeter? = Greeter()
let token = try registry.register("greeter", owner: greeter!) {
  (greeter, name: String) in greeter.greet(name)
}.keep()
let length = try token.call("world")

// The object dies. Too late: refused, and the error knows the whole story.
greeter = nil
do throws(RegistryError) {
  _ = try token.call("world")
  fatalError("called too late")
} catch {
  print(error)
}

// Without keep(), a callback ends with the scope that holds it, or when told
// to. After this, nothing is running and nothing will.
let ticker = try registry.register("ticker") { (count: Int) in print(count) }
try ticker.call(1)
guard case .ended = ticker.end(waiting: .seconds(1)) else { fatalError() }
print(length, registry.close())
