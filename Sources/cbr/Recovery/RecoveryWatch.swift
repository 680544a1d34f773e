// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Looks from outside how far a recovery has come, and says so.
final class RecoveryWatch: Sendable {
  private let path: String
  private let places: [RingPlaces.Place]
  private let isOver = Atomic<Bool>(false)

  private init(_ path: String) {
    self.path = path
    // Without them less is told.
    places =
      (try? Reader.reading(path) { try RingPlaces.all($0, of: path) }) ?? []
  }

  static func during<Result>(
    _ path: String, _ recover: () throws -> Result
  ) rethrows -> Result {
    guard Progress.isPossible else { return try recover() }
    let watch = RecoveryWatch(path)
    let argument = Unmanaged.passRetained(watch)
    var thread = pthread_t()
    let isThere =
      pthread_create(
        &thread, nil,
        { argument in
          Unmanaged<RecoveryWatch>.fromOpaque(argument!).takeRetainedValue()
            .look()
          return nil
        }, argument.toOpaque()) == 0
    if !isThere { argument.release() }
    defer {
      watch.isOver.store(true, ordering: .relaxed)
      if isThere { pthread_join(thread, nil) }
    }
    return try recover()
  }

  private func look() {
    var progress = Progress()
    let all = fileCount
    repeat {
      progress.show {
        """
        recovering: \(max(0, all - fileCount)) of \(all) files done, \
        \(Command.size(fileSize(path + "-wal") ?? 0)) in the log
        """
      }
      usleep(20_000)
    } while !isOver.load(ordering: .relaxed)
    progress.end()
  }

  private var fileCount: Int {
    let names = RingDirectory.names(in: path + ".rings") ?? []
    return names.count { $0.hasSuffix(".ring") }
      + places.count { access($0.file, F_OK) == 0 }
  }
}
