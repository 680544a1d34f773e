// SPDX-License-Identifier: Apache-2.0
//
// Four scripts that the Foundation of Linux and this module are both given. What
// Foundation does is counted here, and not asked for: a later one may do
// better. What this module does is asked for.

import CallbackRegistry
import Foundation
import FoundationNetworking
import Testing

@Suite("Beside Foundation, in numbers", .serialized)
struct FoundationTests {
  private static let rounds = 1_000
  private let name = Notification.Name("told")

  /// Says what was seen, so that a run's numbers can be read.
  private func tell(_ what: String, there: Int, here: Int, of rounds: Int) {
    print("\(what): Foundation \(there), here \(here), of \(rounds)")
  }

  /// Something to post for.
  private final class Sender: Sendable {}

  @Test("Removing twice removes no newer one (C18)")
  func removingTwice() throws {
    var there = 0
    for _ in 0..<Self.rounds {
      let centre = NotificationCenter()
      let counter = Counter()
      nonisolated(unsafe) let first = centre.addObserver(
        forName: name, object: nil, queue: nil
      ) { _ in }
      centre.removeObserver(first)
      let others = (0..<4).map { _ in
        centre.addObserver(forName: name, object: nil, queue: nil) { _ in
          counter.increment()
        }
      }
      centre.removeObserver(first)
      centre.post(name: name, object: nil)
      if counter.count < others.count { there += 1 }
    }
    var here = 0
    let registry = try Registry(level: .off)
    for _ in 0..<Self.rounds {
      let signal = try Signal<Void>("told", in: registry)
      let counter = Counter()
      let first = try signal.connect("first") { _ in }.keep()
      #expect(first.end().isEnded)
      let others = try (0..<4).map { _ in
        try signal.connect("other") { _ in counter.increment() }.keep()
      }
      #expect(first.end().isAlready)
      try signal.emit()
      if counter.count < others.count { here += 1 }
    }
    tell("a newer one removed", there: there, here: here, of: Self.rounds)
    #expect(here == 0)
  }

  @Test("An observer of a dead object hears nothing of its successor (C19)")
  func deadObjects() throws {
    let centre = NotificationCenter()
    let told = Counter()
    var there = 0
    for _ in 0..<Self.rounds {
      let before = told.count
      do {
        let sender = Sender()
        _ = centre.addObserver(forName: name, object: sender, queue: nil) {
          _ in told.increment()
        }
      }
      let successor = Sender()
      centre.post(name: name, object: successor)
      if told.count > before { there += 1 }
    }
    var here = 0
    let registry = try Registry(level: .off)
    let heard = Counter()
    for _ in 0..<Self.rounds {
      let before = heard.count
      var ofTheDead: Signal<Void>? = try Signal("sender", in: registry)
      let token = try #require(ofTheDead).connect("observer") { _ in
        heard.increment()
      }.keep()
      ofTheDead = nil
      let successor = try Signal<Void>("successor", in: registry)
      try successor.emit()
      if heard.count > before || token.isLive { here += 1 }
    }
    tell("a successor's post heard", there: there, here: here, of: Self.rounds)
    #expect(here == 0)
  }

  @Test("One that was removed earlier in a post is not called (D8)")
  func removedInside() throws {
    var there = 0
    for _ in 0..<Self.rounds {
      let centre = NotificationCenter()
      let all = Locked<[@Sendable () -> Void]>([])
      let counter = Counter()
      for _ in 0..<3 {
        nonisolated(unsafe) let observer = centre.addObserver(
          forName: name, object: nil, queue: nil
        ) { _ in
          counter.increment()
          for remove in all.withLock({ $0 }) { remove() }
        }
        all.withLock { $0.append { centre.removeObserver(observer) } }
      }
      centre.post(name: name, object: nil)
      there += counter.count - 1
      all.withLock { $0 = [] }
    }
    var here = 0
    let registry = try Registry(level: .off)
    for _ in 0..<Self.rounds {
      let signal = try Signal<Void>("told", in: registry)
      let all = Locked<[Token<Void, Void>]>([])
      let counter = Counter()
      for _ in 0..<3 {
        let token = try signal.connect("one") { _ in
          counter.increment()
          for other in all.withLock({ $0 }) { _ = other.end() }
        }.keep()
        all.withLock { $0.append(token) }
      }
      try signal.emit()
      here += counter.count - 1
    }
    tell(
      "called after having been removed", there: there, here: here,
      of: 2 * Self.rounds)
    #expect(here == 0)
  }

  private final class Invalidated: NSObject, URLSessionDelegate {
    let counter = Counter()

    func urlSession(
      _ session: URLSession, didBecomeInvalidWithError error: (any Error)?
    ) {
      counter.increment()
    }
  }

  private final class Ended: SessionDelegate {
    let counter = Counter()

    func session(_ session: Session, didBecomeInvalid reason: EndReason) {
      counter.increment()
    }
  }

  @Test("A session that is cancelled twice ends once (F1)")
  func cancelledTwice() throws {
    let rounds = 100
    var there = 0
    for _ in 0..<rounds {
      let delegate = Invalidated()
      let queue = OperationQueue()
      queue.maxConcurrentOperationCount = 1
      let session = URLSession(
        configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
      session.invalidateAndCancel()
      session.invalidateAndCancel()
      // What it has posted by then is told.
      queue.waitUntilAllOperationsAreFinished()
      there += max(0, delegate.counter.count - 1)
    }
    var here = 0
    let registry = try Registry(level: .off)
    for _ in 0..<rounds {
      let delegate = Ended()
      let session = try Session("twice", in: registry, delegate: delegate)
      _ = session.cancel()
      _ = session.cancel()
      #expect(delegate.counter.count >= 1)
      here += delegate.counter.count - 1
    }
    tell("a second terminal event", there: there, here: here, of: rounds)
    #expect(here == 0)
  }
}
