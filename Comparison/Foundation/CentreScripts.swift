// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Handlers of notifications, and what may happen to them.
let centreScripts = [
  // D8. The order is not that of adding everywhere: whoever comes first.
  Script(
    "removed in the same post, before its turn",
    expected: "the first of three removes the others: 1 called"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let removals = Shared([Removal]())
    removals.set(
      (0..<3).map { own in
        sender.add {
          told.add("a")
          if told.text.count > 1 { return }
          for (other, remove) in removals.now.enumerated() where other != own {
            remove()
          }
        }
      })
    sender.post()
    return "the first of three removes the others: \(told.text.count) called"
  },

  Script(
    "added during a post",
    expected: "called first by the next post"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let removals = Shared([Removal]())
    let first = sender.add {
      guard removals.now.isEmpty else { return }
      removals.set([sender.add { told.add("n") }])
    }
    sender.post()
    let atOnce = told.count("n")
    sender.post()
    first()
    if atOnce > 0 { return "called by the same post" }
    return told.count("n") == 1
      ? "called first by the next post" : "never called"
  },

  Script(
    "removes itself",
    expected: "called once in two posts; its state is freed"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let removal = Shared([Removal]())
    weak var state: Told?
    do {
      let captured = Told()
      state = captured
      removal.set([
        sender.add {
          told.add("a")
          for remove in removal.exchange([]) { remove() }
          captured.add("a")
        }
      ])
    }
    sender.post()
    sender.post()
    return "called \(times(told.text.count)) in two posts; its state is "
      + (state == nil ? "freed" : "kept")
  },

  Script(
    "removed twice, with another one added in between",
    expected: "the other one is called"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let remove = sender.add { told.add("a") }
    remove()
    let others = (0..<8).map { _ in sender.add { told.add("b") } }
    remove()
    sender.post()
    for other in others { other() }
    return told.text == "bbbbbbbb"
      ? "the other one is called" : "\(8 - told.count("b")) of 8 is not called"
  },

  Script(
    "posts again from inside",
    expected: "each post calls both, the inner one within the outer one"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let inside = Shared(false)
    let removals = (0..<2).map { _ in
      sender.add {
        told.add("(")
        if !inside.exchange(true) { sender.post() }
        told.add(")")
      }
    }
    sender.post()
    for remove in removals { remove() }
    return told.text == "(()())()"
      ? "each post calls both, the inner one within the outer one" : told.text
  },

  Script(
    "sixteen of one priority",
    expected: "called in the order of adding"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let letters = "abcdefghijklmnop"
    let removals = letters.map { letter in sender.add { told.add(letter) } }
    sender.post()
    for remove in removals { remove() }
    return told.text == letters
      ? "called in the order of adding" : "called in another order"
  },

  Script(
    "priorities",
    expected: "the higher ones first"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    var removals: [Removal] = []
    for (priority, letter) in [(1, "b"), (2, "a"), (0, "c")] as [(Int32, _)] {
      let call: Handler = { told.add(Character(letter)) }
      guard let one = sender.add(priority: priority, call) else {
        return "not offered"
      }
      removals.append(one)
    }
    sender.post()
    for remove in removals { remove() }
    return told.text == "abc" ? "the higher ones first" : told.text
  },

  // F14.
  Script(
    "the object that it is for dies, and nobody removes it",
    expected: "not called any more"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    do {
      let subscriber = centre.makeSubscriber()
      subscriber.add(to: sender) { told.add("a") }
    }
    sender.post()
    return told.text.isEmpty ? "not called any more" : "still called"
  },

  Script(
    "the sender dies, and another one is made where it was",
    expected: "not called by the other one's post"
  ) { centre in
    let told = Told()
    let places: Set<ObjectIdentifier>
    do {
      let senders = (0..<100).map { _ in centre.makeSender() }
      for sender in senders { _ = sender.add { told.add("a") } }
      places = Set(senders.map { ObjectIdentifier($0) })
    }
    var others: [any Sender] = []
    repeat {
      let other = centre.makeSender()
      others.append(other)
      if places.contains(ObjectIdentifier(other)) {
        other.post()
        return told.text.isEmpty
          ? "not called by the other one's post"
          : "called by the other one's post"
      }
    } while others.count < 10_000
    return "no other one came to be there"
  },

  // A1.
  Script(
    "removed by another thread while it runs",
    expected: "removing waits until it has returned"
  ) { centre in
    let sender = centre.makeSender()
    let told = Told()
    let remove = sender.add {
      told.add("(")
      wait { told.count("|") > 0 }
      Thread.sleep(forTimeInterval: 0.5)
      told.add(")")
    }
    Thread.detachNewThread { sender.post() }
    wait { told.count("(") > 0 }
    told.add("|")
    remove()
    let waited = told.count(")") > 0
    wait { told.count(")") > 0 }
    return waited
      ? "removing waits until it has returned" : "removing does not wait"
  },
]
