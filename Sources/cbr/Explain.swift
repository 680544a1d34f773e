// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

extension Command {
  /// Tells the life of a token, or of any other handle.
  static func explain(_ arguments: Arguments) throws -> Ending {
    let values = try arguments.values("TOKEN", "PATH")
    guard let handle = number(values[0]) else {
      throw Problem(
        sentence: """
          "\(values[0])" is no token; a token is a number such as \
          0x0123456789abcdef
          """, ending: .usage)
    }
    var story = [CChar](repeating: 0, count: 16_384)
    let isKnown = try withHistory(values[1]) { path, status, problem in
      story.withUnsafeMutableBufferPointer { buffer in
        var text = Text(buffer.baseAddress, size: buffer.count)
        return HistoryFile.explain(
          handle, in: path, into: &text, status: &status, problem: &problem)
      }
    }
    let told = story.withUnsafeBufferPointer {
      String(cString: $0.baseAddress!)
    }
    if arguments.isJSON {
      print(
        """
        {"known": \(isKnown), "lines": [\
        \(told.split(separator: "\n").map { json(String($0)) }
          .joined(separator: ", "))]}
        """)
    } else if isKnown {
      print(told, terminator: "")
    } else {
      throw Problem(
        sentence: "nothing is known of \(values[0])", ending: .negative)
    }
    return isKnown ? .done : .negative
  }

  private static func number(_ text: String) -> UInt64? {
    let lower = text.lowercased()
    if lower.hasPrefix("0x") { return UInt64(lower.dropFirst(2), radix: 16) }
    // As the shell shows a column that is not made readable.
    return UInt64(text) ?? Int64(text).map { UInt64(bitPattern: $0) }
  }
}

/// Text as JSON has it.
func json(_ text: String) -> String {
  var result = "\""
  for character in text.unicodeScalars {
    switch character {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    case "\n": result += "\\n"
    case "\t": result += "\\t"
    case _ where character.value < 0x20:
      let digits = String(character.value, radix: 16)
      result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: result.unicodeScalars.append(character)
    }
  }
  return result + "\""
}
