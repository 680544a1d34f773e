// SPDX-License-Identifier: Apache-2.0
//
// swift run PluginHost HISTORY PLUGIN...
//
// Loads plug-ins, calls each from two threads without a pause, unloads it
// while it is being called, and goes on. Those who call too late are told, and
// the history says who they were.
import CallbackRegistry
import Dispatch
import Foundation
import Synchronization

/// Threads that call a token until they are refused.
final class Callers: Sendable {
  private let calling = DispatchSemaphore(value: 0)
  private let running = DispatchGroup()
  private let refusals = Mutex<[RegistryError]>([])

  /// Starts them; returns when each has been answered once.
  init(_ count: Int, of token: Token<Double, Double>) {
    for _ in 0..<count {
      running.enter()
      Thread.detachNewThread { [self] in
        callUntilRefused(token)
        running.leave()
      }
    }
    for _ in 0..<count { calling.wait() }
  }

  private func callUntilRefused(_ token: Token<Double, Double>) {
    do throws(RegistryError) {
      _ = try token.call(1)
      calling.signal()
      while true { _ = try token.call(1) }
    } catch {
      refusals.withLock { $0.append(error) }
    }
  }

  /// Waits for all of them; returns what they were told.
  func wait() -> [RegistryError] {
    running.wait()
    return refusals.withLock { $0 }
  }
}

@main
struct PluginHost {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let history = arguments.first, arguments.count > 1 else {
      print("usage: PluginHost HISTORY PLUGIN...")
      return
    }
    let registry = try Registry(history: .file(history), level: .lifecycle)
    for path in arguments.dropFirst() {
      guard let plugin = try Plugin.load(path, in: registry) else {
        continue
      }
      let token = plugin.token
      let name = URL(fileURLWithPath: path).lastPathComponent
      print("\(name): 8 becomes \(try token.call(8))")
      let callers = Callers(2, of: token)
      print("unloaded while it is called: \(plugin.unload())")
      for refusal in callers.wait() {
        print("  a caller was told: \(refusal.explanation.sentence)")
      }
    }
    for try await refusal in try registry.auditHistory().refusals() {
      print(
        "\(refusal.thread) called \"\(refusal.label)\" too late,",
        "which had ended: \(refusal.reason ?? .ended)")
    }
    print("the host goes on, and closes: \(registry.close())")
  }
}
