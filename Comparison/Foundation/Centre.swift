// SPDX-License-Identifier: Apache-2.0

typealias Handler = @Sendable () -> Void

/// Ends what was added.
typealias Removal = @Sendable () -> Void

/// What has handlers, and calls them.
protocol Centre: Sendable {
  func makeSender() -> any Sender
  func makeSubscriber() -> any Subscriber
}

protocol Sender: AnyObject, Sendable {
  func add(_ handler: @escaping Handler) -> Removal
  /// Higher priorities are called first; `nil` where there are none.
  func add(priority: Int32, _ handler: @escaping Handler) -> Removal?
  func post()
}

/// An object for whose sake handlers are added, and that has no code of the
/// program's that removes them.
protocol Subscriber: AnyObject, Sendable {
  func add(to sender: any Sender, _ handler: @escaping Handler)
}
