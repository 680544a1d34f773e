// SPDX-License-Identifier: Apache-2.0
//
// swift run Downloader HISTORY URL
//
// Downloads for a window that is closed in the middle of the transfer, and
// once more for one that stays.
import CallbackRegistry
import Foundation
import Synchronization

/// What the user looks at.
final class Window: DownloadDelegate {
  private let received = Atomic<Int>(0)
  private let closes: Bool

  init(closes: Bool) { self.closes = closes }

  deinit { print("the window has died") }

  func download(_ download: Download, didReceive count: Int) -> Bool {
    received.add(count, ordering: .relaxed)
    if closes, let open = Desk.shared.close() {
      print("the window is closed after some bytes")
      // The last reference but that of this call.
      withExtendedLifetime(open) {}
    }
    return true
  }

  func downloadDidFinish(_ download: Download) {
    print("the window has \(received.load(ordering: .relaxed)) bytes")
  }
}

/// Holds the window that is open.
final class Desk: Sendable {
  static let shared = Desk()
  private let window = Mutex<Window?>(nil)

  func open(_ new: Window) -> Window {
    window.withLock { $0 = new }
    return new
  }

  func close() -> Window? {
    window.withLock { window in
      defer { window = nil }
      return window
    }
  }
}

@main
struct Main {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let url = URL(string: arguments[2]) else {
      print("usage: Downloader HISTORY URL")
      return
    }
    let registry = try Registry(history: .file(arguments[1]))
    for closes in [true, false] {
      let download = try Download(
        url, in: registry, for: Desk.shared.open(Window(closes: closes)))
      download.wait()
      _ = Desk.shared.close()
    }
    for try await refusal in try registry.auditHistory().refusals()
    where refusal.isLate {
      print(
        "told too late: \(refusal.label), \(refusal.count) times,",
        "\(refusal.status)")
    }
    print("closed: \(registry.close())")
  }
}
