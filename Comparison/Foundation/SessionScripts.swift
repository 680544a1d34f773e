// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Sessions, and what may happen to them and their tasks.
let sessionScripts =
  endings + [
    // F4.
    Script("finished with no task", expected: "invalid") { stage in
      let told = Told()
      stage.open(Delegate(told)).finish()
      told.settle()
      return told.ends
    },

    Script("cancelled with no task", expected: "invalid") { stage in
      let told = Told()
      stage.open(Delegate(told)).cancel()
      told.settle()
      return told.ends
    },

    Script(
      "cancelled twice from inside its didComplete",
      expected: "complete, invalid", races: true
    ) { stage in
      let told = Told()
      let session = Shared((any Session)?.none)
      var hooks = Delegate.Hooks()
      hooks.complete = {
        session.now?.cancel()
        session.now?.cancel()
      }
      let made = stage.open(Delegate(told, hooks))
      session.set(made)
      _ = made.begin(.short)
      wait { !told.ends.hasPrefix("nothing") }
      told.settle()
      return told.ends
    },

    Script(
      "a task begun after finish, while another one runs",
      expected: "refused: CBR_E_CLOSED; complete, invalid", races: true
    ) { stage in
      let told = Told()
      let session = stage.open(Delegate(told))
      _ = session.begin(.short)
      wait { told.count("d") > 0 }
      session.finish()
      return begun(session, told)
    },

    Script(
      "a task begun after didBecomeInvalid",
      expected: "refused: CBR_E_CLOSED; invalid"
    ) { stage in
      let told = Told()
      let session = stage.open(Delegate(told))
      session.cancel()
      wait { told.count("i") > 0 }
      return begun(session, told)
    },

    // G28.
    Script(
      "cancelled from inside its own data, more being sent",
      expected: "no further data; cancelled"
    ) { stage in
      afterCancelling(stage, .long) { reply in _ = reply(true) }
    },

    Script(
      "cancelled from inside its own data, more having arrived",
      expected: "no further data; cancelled"
    ) { stage in
      afterCancelling(stage, Work(pieces: 32, bytes: 16_384)) { reply in
        Thread.sleep(forTimeInterval: 0.5)
        _ = reply(true)
      }
    },

    // G26.
    Script(
      "its response answered later, by another thread",
      expected: "data held back until then; complete"
    ) { stage in
      answered(stage) { reply in
        let early = reply.told.count("d") + reply.told.count("c")
        _ = reply.send(true)
        reply.told.settle()
        return early == 0
          ? "data held back until then" : "data comes before that"
      }
    },

    Script(
      "its response answered twice, allowed both times",
      expected: "the second time: CBR_E_CONSUMED; complete"
    ) { stage in
      answered(stage) { reply in
        _ = reply.send(true)
        reply.told.settle()
        let second = reply.send(true) ?? "nothing is said"
        reply.told.settle()
        return "the second time: " + second
      }
    },

    Script(
      "its response answered twice at once, allowed, then cancelled",
      expected: "the second time: CBR_E_CONSUMED; complete"
    ) { stage in
      answered(stage) { reply in
        _ = reply.send(true)
        let second = reply.send(false) ?? "nothing is said"
        reply.told.settle()
        return "the second time: " + second
      }
    },

    Script(
      "its response answered by cancelling",
      expected: "no data; cancelled"
    ) { stage in
      answered(stage) { reply in
        _ = reply.send(false)
        reply.told.settle()
        return reply.told.count("d") == 0 ? "no data" : "data"
      }
    },

    Script(
      "its response never answered, the session cancelled",
      expected: "no data, nothing; then cancelled, invalid"
    ) { stage in
      let told = Told()
      var hooks = Delegate.Hooks()
      hooks.response = { _ in }
      let session = stage.open(Delegate(told, hooks))
      _ = session.begin(.short)
      wait { told.count("r") > 0 }
      told.settle()
      let before = (told.count("d") == 0 ? "no data, " : "data, ") + told.ends
      session.cancel()
      told.settle()
      return before + "; then " + told.ends
    },

    // G23.
    Script(
      "its delegate, held by nobody else",
      expected: "held until the end, freed after it"
    ) { stage in
      let told = Told()
      weak var delegate: Delegate?
      let session: any Session
      do {
        let made = Delegate(told)
        delegate = made
        session = stage.open(made)
      }
      _ = session.begin(.short)
      wait { told.count("c") > 0 }
      let before = delegate == nil ? "freed before" : "held until"
      session.finish()
      wait { told.count("i") > 0 }
      let freed = wait { delegate == nil }
      return before + " the end, " + (freed ? "freed" : "held") + " after it"
    },

    Script(
      "its delegate, the session being forgotten without an end",
      expected: "held"
    ) { stage in
      let told = Told()
      weak var delegate: Delegate?
      do {
        let made = Delegate(told)
        delegate = made
        _ = stage.open(made).begin(.short)
      }
      wait { told.count("c") > 0 }
      told.settle()
      return delegate == nil ? "freed" : "held"
    },
  ]

/// F1: a session with one task, ended in several ways by one thread or four.
private let endings = [
  ("finished twice", false, false),
  ("finished, then cancelled", false, true),
  ("cancelled, then finished", true, false),
  ("cancelled twice", true, true),
].flatMap { name, first, second in
  [1, 4].map { threads in
    Script(
      name + (threads == 1 ? "" : ", by each of four threads"),
      expected: (first || second ? "cancelled" : "complete")
        + " 1\u{D7}; invalid 1\u{D7}; last: invalid",
      races: true
    ) { stage in
      let told = Told()
      let session = stage.open(Delegate(told))
      _ = session.begin(first || second ? .long : .short)
      wait { told.count("d") > 0 }
      let ready = Told()
      for _ in 0..<threads {
        Thread.detachNewThread {
          ready.add("t")
          while ready.text.count < threads {}
          for cancels in [first, second] {
            if cancels { session.cancel() } else { session.finish() }
          }
        }
      }
      wait { told.count("i") > 0 && told.count("c") + told.count("x") > 0 }
      told.settle()
      return told.countedEnds
    }
  }
}

/// What becomes of a task that is begun too late.
private func begun(_ session: any Session, _ told: Told) -> String {
  let refusal = session.begin(.short)
  told.settle()
  return (refusal.map { "refused: \($0); " } ?? "nothing is said; ")
    + told.ends
}

/// Cancels a task in its first data.
private func afterCancelling(
  _ stage: any Stage, _ work: Work,
  answer: @escaping @Sendable (@escaping Reply) -> Void
) -> String {
  let told = Told()
  var hooks = Delegate.Hooks()
  hooks.response = answer
  hooks.data = { cancel in
    if told.count("d") == 1 { cancel() }
  }
  let session = stage.open(Delegate(told, hooks))
  _ = session.begin(work)
  wait { told.count("d") > 0 }
  told.settle()
  return (told.count("d") == 1 ? "no further data; " : "further data; ")
    + told.ends
}

/// A reply that is sent by the thread that waited for it.
private struct LateReply {
  let told: Told
  let send: Reply
}

/// Lets a response's callback return, answers half a second later, and adds
/// what ends there are then.
private func answered(
  _ stage: any Stage, answer: (LateReply) -> String
) -> String {
  let told = Told()
  let reply = Shared(Reply?.none)
  var hooks = Delegate.Hooks()
  hooks.response = { reply.set($0) }
  let session = stage.open(Delegate(told, hooks))
  _ = session.begin(.short)
  wait { reply.now != nil }
  Thread.sleep(forTimeInterval: 0.5)
  guard let send = reply.now else { return "no response" }
  return answer(LateReply(told: told, send: send)) + "; " + told.ends
}
