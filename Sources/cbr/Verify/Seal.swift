// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

extension Command {
  /// Has the blocks of a history sealed from the next one on.
  static func seal(_ arguments: Arguments) throws -> Ending {
    let path = try arguments.values("PATH")[0]
    var made: VerificationKey?
    var problem: HistoryFile.SealProblem?
    // Starts the library, which finds out how to check records fast.
    _ = Process.currentThread()
    _ = try withHistory(path) { absolute, status, sentence in
      problem = HistoryFile.seal(
        absolute, status: &status, problem: &sentence
      ) { made = VerificationKey($0) }
    }
    if let problem { throw Problem(problem, path) }
    guard let made else { return .failed }
    if arguments.isJSON {
      print("{\"block\": \(made.block), \"key\": \(json(made.text))}")
    } else {
      print(made.text)
      complain(
        """
        This key is shown once. Keep it somewhere else, and nowhere on this \
        machine: "cbr verify --seal KEY" on a copy there says whether what is \
        written from block \(made.block) on was changed.

        """)
    }
    return .done
  }
}

/// The key of the first sealed block, for whoever will verify.
struct VerificationKey {
  let block: Int64
  let bytes: [UInt8]

  init(_ key: borrowing SealKey) {
    block = key.block
    bytes = Array(key.key)
  }

  /// Nil: it is not written as one.
  init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].utf8.count == 2 * SealKey.bytes,
      parts[1].utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let block = Int64(parts[0]), block > 0
    else { return nil }
    let digits = parts[1].compactMap(\.hexDigitValue)
    self.block = block
    bytes = stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }

  var text: String {
    "\(block):"
      + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

extension Problem {
  fileprivate init(_ problem: HistoryFile.SealProblem, _ path: String) {
    let reason =
      switch problem {
      case .noHash: "libcrypto is needed, and cannot be loaded"
      case .exists:
        "\(path).seal exists and was left as it is: the history has a seal; "
          + "to begin another one, remove it first"
      case .busy: "history \(path): it cannot be locked; try again"
      case .damaged: "history \(path): it has no number of blocks"
      case .failed(0): "the system has no random numbers"
      case .failed(let code): "\(path).seal: \(String(cString: strerror(code)))"
      }
    self.init(sentence: reason, ending: .failed)
  }
}
