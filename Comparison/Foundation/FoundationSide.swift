// SPDX-License-Identifier: Apache-2.0
import Foundation
import FoundationNetworking

struct FoundationCentre: Centre {
  private let centre = NotificationCenter()

  func makeSender() -> any Sender { FoundationSender(centre) }
  func makeSubscriber() -> any Subscriber { FoundationSubscriber() }
}

private let name = Notification.Name("told")

private final class FoundationSender: Sender {
  private let centre: NotificationCenter

  init(_ centre: NotificationCenter) {
    self.centre = centre
  }

  func add(_ handler: @escaping Handler) -> Removal {
    // It is only handed back.
    nonisolated(unsafe) let observer = centre.addObserver(
      forName: name, object: self, queue: nil
    ) { _ in handler() }
    return { [centre] in centre.removeObserver(observer) }
  }

  func add(priority: Int32, _ handler: @escaping Handler) -> Removal? { nil }

  func post() {
    centre.post(name: name, object: self)
  }
}

private final class FoundationSubscriber: Subscriber {
  func add(to sender: any Sender, _ handler: @escaping Handler) {
    _ = sender.add { [weak self] in
      _ = self
      handler()
    }
  }
}

struct FoundationStage: Stage {
  private let server = Server()

  func open(_ delegate: Delegate) -> any Session {
    FoundationSession(server: server, delegate)
  }
}

private final class FoundationSession: Session {
  private let server: Server
  private let session: URLSession

  init(server: Server, _ delegate: Delegate) {
    self.server = server
    session = URLSession(
      configuration: .ephemeral, delegate: FoundationDelegate(delegate),
      delegateQueue: nil)
  }

  func begin(_ work: Work) -> String? {
    session.dataTask(with: server.url(of: work)).resume()
    return nil
  }

  func finish() { session.finishTasksAndInvalidate() }
  func cancel() { session.invalidateAndCancel() }
}

private final class FoundationDelegate: NSObject, URLSessionDataDelegate {
  typealias Answer = @Sendable (URLSession.ResponseDisposition) -> Void

  private let delegate: Delegate

  init(_ delegate: Delegate) {
    self.delegate = delegate
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask,
    didReceive response: URLResponse,
    completionHandler: @escaping Answer
  ) {
    delegate.response { allow in
      completionHandler(allow ? .allow : .cancel)
      return nil
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
  ) {
    delegate.data { dataTask.cancel() }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    didCompleteWithError error: (any Error)?
  ) {
    guard let error else { return delegate.complete("c") }
    let cancelled = (error as? URLError)?.code == .cancelled
    delegate.complete(cancelled ? "x" : "f")
  }

  func urlSession(
    _ session: URLSession, didBecomeInvalidWithError error: (any Error)?
  ) {
    delegate.invalid()
  }
}
