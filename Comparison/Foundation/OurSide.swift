// SPDX-License-Identifier: Apache-2.0
import CCallbackRegistry
import Foundation

private let registry: cbr_registry = {
  var opened = cbr_registry()
  check(cbr_registry_open(nil, &opened))
  return opened
}()

private func check(_ status: cbr_status) {
  guard status.rawValue >= 0 else { fatalError(name(of: status)) }
}

private func name(of status: cbr_status) -> String {
  String(cString: cbr_status_name(status.rawValue))
}

/// Fills in what a registration needs that frees an object.
private func registration(of context: AnyObject) -> cbr_registration {
  var what = cbr_registration()
  what.size = MemoryLayout<cbr_registration>.size
  what.context = Unmanaged.passRetained(context).toOpaque()
  what.destroy = { Unmanaged<AnyObject>.fromOpaque($0!).release() }
  return what
}

/// The object that a registration's context is.
private func object<Object: AnyObject>(
  _ context: UnsafeMutableRawPointer?, _: Object.Type = Object.self
) -> Object {
  Unmanaged<Object>.fromOpaque(context!).takeUnretainedValue()
}

private func owner(of object: AnyObject) -> cbr_owner {
  var owner = cbr_owner()
  check(
    cbr_owner_for_object(
      registry, Unmanaged.passUnretained(object).toOpaque(), nil, &owner))
  return owner
}

private func died(_ object: AnyObject) {
  check(
    cbr_object_died(registry, Unmanaged.passUnretained(object).toOpaque()))
}

struct OurCentre: Centre {
  func makeSender() -> any Sender { OurSender() }
  func makeSubscriber() -> any Subscriber { OurSubscriber() }
}

private final class Handling: Sendable {
  let handler: Handler

  init(_ handler: @escaping Handler) {
    self.handler = handler
  }
}

private final class OurSender: Sender {
  private let signal = Shared(cbr_signal())

  init() {
    var made = cbr_signal()
    check(cbr_signal_create(registry, nil, owner(of: self), &made))
    signal.set(made)
  }

  deinit {
    died(self)
  }

  func add(_ handler: @escaping Handler) -> Removal {
    connect(handler)
  }

  func add(priority: Int32, _ handler: @escaping Handler) -> Removal? {
    connect(handler, priority: priority)
  }

  @discardableResult
  func connect(
    _ handler: @escaping Handler, priority: Int32 = 0, owner: cbr_owner = 0
  ) -> Removal {
    let call: cbr_handler = { context, _ in
      object(context, Handling.self).handler()
      return cbr_disposition(CBR_CONTINUE)
    }
    var what = registration(of: Handling(handler))
    what.function = unsafeBitCast(call, to: cbr_function.self)
    what.owner = owner
    var options = cbr_connection_options()
    options.size = MemoryLayout<cbr_connection_options>.size
    options.priority = priority
    var token = cbr_token()
    check(cbr_connect(signal.now, &what, &options, &token))
    return { [token] in
      check(
        cbr_invalidate_wait(token, cbr_reason(CBR_REASON_ENDED), UInt64.max))
    }
  }

  func post() {
    check(cbr_emit(signal.now, nil, nil))
  }
}

private final class OurSubscriber: Subscriber {
  deinit {
    died(self)
  }

  func add(to sender: any Sender, _ handler: @escaping Handler) {
    guard let sender = sender as? OurSender else { return }
    sender.connect(handler, owner: owner(of: self))
  }
}

struct OurStage: Stage {
  func open(_ delegate: Delegate) -> any Session { OurSession(delegate) }
}

private struct OurSession: Session {
  private let session: cbr_session

  init(_ delegate: Delegate) {
    session = OurDelegate(delegate).openSession()
  }

  /// Begins a task, with a thread that does its work.
  func begin(_ work: Work) -> String? {
    var task = cbr_task()
    let status = cbr_task_begin(session, nil, &task)
    guard status == CBR_OK else { return name(of: status) }
    Thread.detachNewThread { [task] in
      guard cbr_task_respond(task, nil, 0) == CBR_OK else { return }
      let piece = [UInt8](repeating: 0, count: work.bytes)
      for _ in 0..<work.pieces {
        guard cbr_task_data(task, piece, piece.count) == CBR_OK else { return }
        usleep(work.milliseconds * 1000)
      }
      cbr_task_complete(task, 0)
    }
    return nil
  }

  func finish() { check(cbr_session_finish(session)) }
  func cancel() { check(cbr_session_cancel(session)) }
}

private final class OurDelegate: Sendable {
  let delegate: Delegate
  let token = Shared(cbr_token())

  init(_ delegate: Delegate) {
    self.delegate = delegate
  }

  func openSession() -> cbr_session {
    var what = registration(of: self)
    what.interface = cbr_session_interface()
    let made = Self.methods.withUnsafeBufferPointer { methods in
      what.methods = methods.baseAddress
      var token = cbr_token()
      check(cbr_register(registry, &what, &token))
      return token
    }
    token.set(made)
    var options = cbr_session_options()
    options.size = MemoryLayout<cbr_session_options>.size
    options.delegate = made
    var session = cbr_session()
    check(cbr_session_create(registry, &options, &session))
    return session
  }

  /// In the order of the interface.
  private static var methods: [cbr_function?] {
    let response: cbr_did_receive_response = { context, _, _, _, reply in
      object(context, OurDelegate.self).delegate.response { allow in
        let status = cbr_reply_send(
          reply, cbr_disposition(allow ? CBR_ALLOW : CBR_CANCEL), 0)
        return status == CBR_OK ? nil : name(of: status)
      }
    }
    let data: cbr_did_receive_data = { context, task, _, _ in
      object(context, OurDelegate.self).delegate.data {
        check(cbr_task_cancel(task))
      }
    }
    let complete: cbr_did_complete = { context, _, error in
      let cancelled = error == CBR_TASK_CANCELLED
      object(context, OurDelegate.self).delegate
        .complete(error == 0 ? "c" : cancelled ? "x" : "f")
    }
    // Who made the delegate lets go of it; the session does when this returns.
    let invalid: cbr_did_become_invalid = { context, _, _ in
      let it = object(context, OurDelegate.self)
      it.delegate.invalid()
      check(cbr_invalidate(it.token.now, cbr_reason(CBR_REASON_ENDED)))
    }
    return [
      unsafeBitCast(response, to: cbr_function.self),
      unsafeBitCast(data, to: cbr_function.self),
      unsafeBitCast(complete, to: cbr_function.self),
      unsafeBitCast(invalid, to: cbr_function.self),
      nil,
    ]
  }
}
