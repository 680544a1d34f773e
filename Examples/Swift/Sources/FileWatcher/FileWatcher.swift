// SPDX-License-Identifier: Apache-2.0
import CallbackRegistry
import Dispatch
import Glibc

/// Tells what happens to the files of a folder, by Linux's inotify.
final class FileWatcher: Sendable {
  struct Change: Sendable {
    enum Kind: Sendable {
      case created
      case written
      case removed
    }

    let kind: Kind
    let file: String
  }

  struct Failure: Error {
    let errno: Int32
  }

  /// Emitted on a queue of the watcher's own.
  let changes: Signal<Change>
  private let events: InotifyEvents

  init(_ folder: String, in registry: Registry) throws {
    let changes = try Signal<Change>("changes", in: registry)
    self.changes = changes
    events = try InotifyEvents(of: folder) { mask, file in
      guard let kind = Change.Kind(mask) else { return }
      // It is over when the watcher is.
      _ = try? changes.emit(Change(kind: kind, file: file))
    }
  }
}

extension FileWatcher.Change.Kind {
  fileprivate init?(_ mask: UInt32) {
    if mask & UInt32(IN_CREATE | IN_MOVED_TO) != 0 {
      self = .created
    } else if mask & UInt32(IN_CLOSE_WRITE) != 0 {
      self = .written
    } else if mask & UInt32(IN_DELETE | IN_MOVED_FROM) != 0 {
      self = .removed
    } else {
      return nil
    }
  }
}

/// The events of one folder, until this is released.
private final class InotifyEvents: Sendable {
  private let stop: @Sendable () -> Void

  init(
    of folder: String,
    _ body: @escaping @Sendable (_ mask: UInt32, _ file: String) -> Void
  ) throws {
    let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    let wanted =
      IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM
    guard descriptor >= 0,
      inotify_add_watch(descriptor, folder, UInt32(wanted)) >= 0
    else {
      let failure = FileWatcher.Failure(errno: errno)
      close(descriptor)
      throw failure
    }
    // Unsafe in name only: a source may be cancelled on any thread.
    nonisolated(unsafe) let source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "inotify"))
    source.setEventHandler { Self.read(descriptor, body) }
    source.setCancelHandler { close(descriptor) }
    source.activate()
    stop = { source.cancel() }
  }

  deinit { stop() }

  /// Tells all that there is to be read.
  private static func read(
    _ descriptor: Int32, _ body: (UInt32, String) -> Void
  ) {
    let header = MemoryLayout<inotify_event>.size
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
      while case let count = Glibc.read(descriptor, buffer.baseAddress, 4_096),
        count > 0
      {
        var offset = 0
        while offset + header <= count {
          let event = buffer.loadUnaligned(
            fromByteOffset: offset, as: inotify_event.self)
          let name = buffer[(offset + header)..<count]
            .prefix(Int(event.len)).prefix { $0 != 0 }
          body(event.mask, String(decoding: name, as: UTF8.self))
          offset += header + Int(event.len)
        }
      }
    }
  }
}
