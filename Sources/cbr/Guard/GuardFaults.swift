// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a description, line by line.
struct GuardFaults {
  private var all: [(line: Int, sentence: String)] = []

  var isEmpty: Bool { all.isEmpty }

  /// Line 0 is the description as a whole.
  mutating func add(_ line: Int, _ sentence: String) {
    all.append((line, Self.shortened(sentence)))
  }

  /// What was quoted may be of any length: its middle is left out.
  private static func shortened(_ sentence: String) -> String {
    guard sentence.count > 400 else { return sentence }
    return "\(sentence.prefix(200)) ... \(sentence.suffix(200))"
  }

  /// One line for each, as compilers write them.
  func text(_ path: String) -> String {
    all.sorted { $0.line < $1.line }.map { fault in
      let place = fault.line == 0 ? path : "\(path):\(fault.line)"
      return "\(place): \(fault.sentence)"
    }.joined(separator: "\n")
  }

  /// The word that needs the fewest changes, if these are few.
  static func nearest(_ word: String, _ words: [String]) -> String? {
    let near = words.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
    guard let near, near.1 <= max(1, word.count / 3) else { return nil }
    return near.0
  }

  /// How many letters have to be changed, added or removed.
  private static func distance(_ one: String, _ other: String) -> Int {
    let other = Array(other)
    var row = Array(0...other.count)
    for (index, letter) in one.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in other.indices {
        let change = diagonal + (letter == other[column] ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(change, diagonal + 1, row[column] + 1)
      }
    }
    return row[other.count]
  }
}
