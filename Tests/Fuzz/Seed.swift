// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import CallbackRegistry

/// What the library itself has made, to be changed.
struct Seed {
  private(set) var rings: RingFileImage
  private(set) var history: [UInt8] = []
  private(set) var token = ""

  /// A history of two threads; its file of rings as it is inside a call.
  init() {
    let folder = Folder()
    defer { folder.remove() }
    let path = folder / "history"
    rings = RingFileImage(bytes: [])
    let registry = Self.open(path)
    do {
      try registry.note(String(repeating: "a remark ", count: 20))
      let token = try registry.register("other") { (_: Int) in }.keep()
      self.token = "\(token.handle)"
      for each in 0..<20 { try token.call(each) }
      Self.onAnotherThread { for each in 0..<5 { try? token.call(each) } }
      _ = token.end()
      try? token.call(0)
      let last = try registry.register("last") { (_: Int) in
        Self.ringFile(in: path + ".rings")
      }
      rings = RingFileImage(bytes: try last.call(0))
    } catch { fatalError("\(error)") }
    _ = Closing.close(registry.handle, timeoutNanoseconds: .max)
    history = Folder.read(path)
  }

  private static func open(_ path: String) -> Registry {
    var handle: UInt64 = 0
    let status = path.withCString { path in
      var options = RegistryOptions()
      options.historyPath = path
      options.ringBytes = 1 << 15
      return Opening.open(options, out: &handle)
    }
    guard status == .ok, let registry = Registry(handle: handle) else {
      fatalError("no registry")
    }
    return registry
  }

  private static func ringFile(in directory: String) -> [UInt8] {
    guard let name = RingDirectory.names(in: directory)?.first else {
      fatalError("no file of rings")
    }
    return Folder.read(directory + "/" + name)
  }

  private static func onAnotherThread(_ body: @escaping () -> Void) {
    var body = body
    withUnsafeMutablePointer(to: &body) { body in
      var thread = pthread_t()
      pthread_create(
        &thread, nil,
        { body in
          body!.assumingMemoryBound(to: (() -> Void).self).pointee()
          return nil
        }, body)
      pthread_join(thread, nil)
    }
  }
}
