// SPDX-License-Identifier: Apache-2.0
//
// swift run FileWatcher HISTORY FOLDER
//
// Prints what happens to the files of a folder until one is called "stop". An
// object counts them, too, as long as it lives.
import CallbackRegistry
import Synchronization

/// What becomes of it is of no concern to the watcher.
final class Tally: Sendable {
  private let counted = Atomic<Int>(0)

  var count: Int { counted.load(ordering: .relaxed) }

  func add(_ change: FileWatcher.Change) { counted.add(1, ordering: .relaxed) }
}

@main
struct Main {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else {
      print("usage: FileWatcher HISTORY FOLDER")
      return
    }
    let registry = try Registry(history: .file(arguments[1]))
    let watcher = try FileWatcher(arguments[2], in: registry)
    var tally: Tally? = Tally()
    let counting = try watcher.changes.connect("tally", owner: tally!) {
      tally, change in tally.add(change)
    }
    let changes = try watcher.changes.values("printer")
    print("watching")
    for await change in changes {
      print("\(change.kind) \(change.file)")
      if change.file == "first" {
        // It dies while files change; nobody has to be told.
        tally = nil
      }
      if change.file == "stop" { break }
    }
    print("dropped: \(changes.droppedCount)")
    print("the tally is dead: \(tally == nil && !counting.isLive)")
    print("the loop has ended its connection: \(!changes.isLive)")
    for try await life in try registry.auditHistory().lives(label: "tally")
    where life.kind == .token {
      print("tally: \(life.calls) calls, ended: \(life.reason ?? .ended)")
    }
  }
}
