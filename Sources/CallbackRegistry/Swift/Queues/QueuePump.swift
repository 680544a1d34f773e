// SPDX-License-Identifier: Apache-2.0
//
// A queue that delivers elsewhere is a pumped one in the engine. A Dispatch
// source watches its descriptor, which is readable while something waits, from
// whoever that came, and when a timeout is over; then it has a job run there
// that delivers. The source is suspended until that is done: the descriptor
// stays readable so long.
//
// The descriptor is a duplicate: the engine closes its own with the queue. It
// is closed when the source is cancelled: by the queue's object, or by the job
// that finds the queue dead.

#if !hasFeature(Embedded)
  import CPlatform
  import Dispatch

  /// Delivers what waits in a queue at another place.
  // Unchecked: a Dispatch source may be used by any thread.
  final class QueuePump: @unchecked Sendable {
    typealias Submit = @Sendable (@escaping @Sendable () -> Void) -> Void

    private static let watch = DispatchQueue(label: "CallQueue")

    private let queue: UInt64
    private let source: any DispatchSourceRead

    /// Nil without a descriptor.
    init?(_ queue: UInt64, _ submit: @escaping Submit) {
      guard let descriptor = Queues.duplicateDescriptor(of: queue) else {
        return nil
      }
      self.queue = queue
      source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: Self.watch)
      // The source and this hold each other until it is cancelled.
      source.setEventHandler { [self] in
        source.suspend()
        submit { self.deliver() }
      }
      source.setCancelHandler { cbr_file_close(descriptor) }
      source.resume()
    }

    private func deliver() {
      var ran = 0
      _ = Queues.run(queue, limit: 0, ran: &ran)
      source.resume()
      if !Liveness.isLive(queue) { source.cancel() }
    }

    func cancel() { source.cancel() }
  }
#endif
