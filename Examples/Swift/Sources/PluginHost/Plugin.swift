// SPDX-License-Identifier: Apache-2.0
import CallbackRegistry
import Glibc

/// A library that was loaded, and what the host may call of it.
///
/// All that the plug-in registers belongs to one owner, so that nothing of it
/// is called once that owner has ended.
struct Plugin: ~Copyable {
  /// Calls the plug-in; it is a number that anyone may keep, for any time.
  let token: Token<Double, Double>
  private let owner: Owner
  // The library's handle: a number here, which nobody follows.
  private let library: UInt

  /// What a plug-in has to export: given the registry, its owner and the type
  /// of what it is to register, it returns a token.
  private typealias Start = @convention(c) (UInt64, UInt64, UInt64) -> UInt64

  /// Loads a plug-in and starts it; nil when it is none.
  static func load(
    _ path: String, in registry: Registry
  ) throws(RegistryError) -> Plugin? {
    guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
      let symbol = dlsym(library, "plugin_start")
    else {
      print(dlerror().map { String(cString: $0) } ?? "\(path) is no plug-in")
      return nil
    }
    let start = unsafeBitCast(symbol, to: Start.self)
    let owner = try Owner(path, in: registry)
    let tag = Token<Double, Double>.typeTag
    let handle = start(registry.handle, owner.handle, tag)
    guard let token = Token<Double, Double>(handle: handle) else {
      print("\(path) has not started")
      return nil
    }
    return Plugin(
      token: token, owner: owner, library: UInt(bitPattern: library))
  }

  /// Ends what the plug-in has registered, and waits for calls that are
  /// running in it; then its code can go.
  ///
  /// False when a call did not return in time: the library stays, since
  /// somebody is inside it.
  consuming func unload() -> Bool {
    let outcome = owner.end(reason: .unloaded, waiting: .seconds(10))
    guard case .ended = outcome else {
      print("it stays loaded: \(outcome)")
      return false
    }
    return dlclose(UnsafeMutableRawPointer(bitPattern: library)!) == 0
  }
}
