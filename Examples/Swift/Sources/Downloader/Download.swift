// SPDX-License-Identifier: Apache-2.0
import CallbackRegistry
import Foundation
import FoundationNetworking

/// Is told of a download, as long as it lives.
protocol DownloadDelegate: AnyObject, Sendable {
  /// Some bytes have come; false ends the download.
  func download(_ download: Download, didReceive count: Int) -> Bool
  func downloadDidFinish(_ download: Download)
}

extension DownloadDelegate {
  func downloadDidFinish(_ download: Download) {}
}

/// A download by Foundation's session.
///
/// The session holds its delegate until it ends, whoever that was made for. So
/// its delegate is this object; who is really told is held weakly, behind the
/// registry.
final class Download: NSObject, URLSessionDataDelegate, Sendable {
  let delegate: DelegateSlot<any DownloadDelegate>
  private let over = DispatchGroup()

  init(_ url: URL, in registry: Registry, for delegate: any DownloadDelegate)
    throws
  {
    self.delegate = try DelegateSlot("download.delegate", in: registry)
    self.delegate.value = delegate
    super.init()
    over.enter()
    let session = URLSession(
      configuration: .ephemeral, delegate: self, delegateQueue: nil)
    session.dataTask(with: url).resume()
    session.finishTasksAndInvalidate()
  }

  /// Waits until nothing more is told.
  func wait() { over.wait() }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
  ) {
    // Nobody is there to want them: the rest need not come.
    let goesOn = delegate.call(default: false) {
      $0.download(self, didReceive: data.count)
    }
    if !goesOn { dataTask.cancel() }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    didCompleteWithError error: (any Error)?
  ) {
    print("the transfer is over")
    delegate.call(default: ()) { $0.downloadDidFinish(self) }
    over.leave()
  }
}
