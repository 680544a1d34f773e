// SPDX-License-Identifier: Apache-2.0
//
// In the engine an error is a number. One of Swift's is kept beside what it is
// of, and passes as a number that finds it there; so a number that C makes up
// finds nothing, or an error of the same thing.

#if !hasFeature(Embedded)
  /// Errors that pass through the engine as numbers.
  // Unchecked: `errors` and `count` are used under the lock alone.
  final class PassedErrors: @unchecked Sendable {
    /// Between those of the library and those of programs in C.
    private static let first = Int32.min + 0x1_0000

    private let lock: Monitor
    private var errors: [Int32: any Error] = [:]
    private var count: Int32 = 0

    /// Nil without memory.
    init?() {
      guard let lock = Monitor.make() else { return nil }
      self.lock = lock
    }

    deinit { lock.destroy() }

    /// Keeps an error until it is taken.
    func number(for error: any Error) -> Int32 {
      lock.locked {
        let number = Self.first + count
        count = (count + 1) & 0xFFFF
        errors[number] = error
        return number
      }
    }

    /// Takes an error out; nil when the number is none of these.
    @discardableResult
    func take(_ number: Int32) -> (any Error)? {
      lock.locked { errors.removeValue(forKey: number) }
    }
  }
#endif
