// SPDX-License-Identifier: Apache-2.0

/// Reads a description, line by line.
///
/// A line at the margin says something of the library; an indented one says more of what the last such line has said.
struct GuardParser {
  private(set) var description = GuardDescription()
  private(set) var faults = GuardFaults()
  /// What an indented line belongs to.
  private var scope = Scope.nothing
  private var codeBegins: Int?

  private enum Scope {
    case nothing
    case callback
    case function
    /// The line that it belongs to could not be read.
    case unreadable
  }

  private static let words = [
    "library", "include", "own", "callback", "setter", "options", "ends",
    "resets", "copies", "direct", "code",
  ]

  init(_ text: String, path: String) {
    description.path = path
    var number = 0
    let lines = text.split(omittingEmptySubsequences: false) {
      $0 == "\n" || $0 == "\r\n"
    }
    for line in lines {
      number += 1
      take(line, number)
    }
    if let codeBegins {
      faults.add(codeBegins, "the C code has no end; add a line \"end\"")
    }
  }

  private mutating func take(_ line: Substring, _ number: Int) {
    if codeBegins != nil {
      if line.trimmed == "end" {
        codeBegins = nil
      } else {
        description.code.append(.init(text: String(line), line: number))
      }
      return
    }
    let content = line.trimmed
    if content.isEmpty || content.first == "#" { return }
    let (word, rest) = Self.split(content)
    do {
      if line.first == " " || line.first == "\t" {
        try more(word, rest, number)
      } else {
        scope = .unreadable
        try begin(word, rest, number)
      }
    } catch let fault as Unreadable {
      faults.add(number, fault.sentence)
    } catch {}
  }

  private static func isNoName(_ letter: Character) -> Bool {
    " /\"\\".contains(letter)
  }

  /// The first word, and what follows it.
  private static func split(_ content: String) -> (String, String) {
    let word = content.prefix { $0 != " " && $0 != "\t" }
    return (String(word), content.dropFirst(word.count).trimmed)
  }

  private mutating func begin(
    _ word: String, _ rest: String, _ line: Int
  ) throws {
    switch word {
    case "library":
      guard description.library == nil else {
        throw Unreadable(
          "there is a library already; write one description for each")
      }
      guard rest.contains(".so"), !rest.contains(where: Self.isNoName) else {
        throw Unreadable(
          "\"\(rest)\" is no name of a shared library; write it as "
            + "libcurl.so.4")
      }
      description.library = .init(text: rest, line: line)
      scope = .nothing
    case "include":
      guard
        rest.first == "<" && rest.last == ">"
          || rest.count > 2 && rest.first == "\"" && rest.last == "\""
      else {
        throw Unreadable("\"\(rest)\" must be <header.h> or \"header.h\"")
      }
      description.includes.append(.init(text: rest, line: line))
      scope = .nothing
    case "own":
      description.isOwn = true
      scope = .nothing
    case "callback":
      description.callbacks.append(
        .init(signature: try Prototype(rest, line: line)))
      scope = .callback
    case "code":
      codeBegins = line
      scope = .nothing
    default:
      guard let role = GuardDescription.Role(rawValue: word) else {
        throw Unreadable(Self.unknown(word, Self.words))
      }
      description.functions.append(
        .init(role: role, prototype: try Prototype(rest, line: line)))
      scope = .function
    }
  }

  private mutating func more(
    _ word: String, _ rest: String, _ line: Int
  ) throws {
    switch scope {
    case .nothing:
      throw Unreadable(
        "an indented line must follow a callback or a function; remove the "
          + "blanks before \"\(word)\"")
    case .callback: try moreOfCallback(word, rest, line)
    case .function: try moreOfFunction(word, rest, line)
    case .unreadable: break
    }
  }

  private mutating func moreOfCallback(
    _ word: String, _ rest: String, _ line: Int
  ) throws {
    let last = description.callbacks.count - 1
    let text = GuardDescription.Text(text: rest, line: line)
    switch word {
    case "jumps": description.callbacks[last].jumps = true
    case "default": description.callbacks[last].answer = try Self.some(text)
    case "without": description.callbacks[last].without = try Self.some(text)
    case "otherwise":
      description.callbacks[last].otherwise = try Self.some(text)
    case "passes": description.callbacks[last].passes = try Self.some(text)
    default:
      throw Unreadable(
        Self.unknown(
          word, ["default", "without", "otherwise", "passes", "jumps"]))
    }
  }

  private mutating func moreOfFunction(
    _ word: String, _ rest: String, _ line: Int
  ) throws {
    let last = description.functions.count - 1
    let text = GuardDescription.Text(text: rest, line: line)
    let role = description.functions[last].role
    switch (word, role) {
    case ("object", _): description.functions[last].object = try Self.some(text)
    case ("success", _):
      description.functions[last].success = try Self.some(text)
    case ("returns", .setter) where rest == "data":
      description.functions[last].returnsData = true
    case ("waits", .ends): description.functions[last].waits = true
    case ("program", .ends): description.functions[last].isOfProgram = true
    case ("pair", .options):
      let words = rest.split(separator: " ").map(String.init)
      guard words.count == 3, words.allSatisfy(\.isIdentifier) else {
        throw Unreadable(
          "a pair needs a callback's name, the option of its function and the "
            + "option of its data")
      }
      description.functions[last].pairs.append(
        .init(
          callback: words[0], function: words[1], data: words[2], line: line))
    default:
      throw Unreadable(Self.unknown(word, Self.words(of: role)))
    }
  }

  private static func words(of role: GuardDescription.Role) -> [String] {
    switch role {
    case .setter: ["object", "success", "returns data"]
    case .options: ["success", "pair"]
    case .ends: ["object", "success", "waits", "program"]
    case .resets: ["object", "success"]
    case .copies, .direct: ["object"]
    }
  }

  private static func some(
    _ text: GuardDescription.Text
  ) throws -> GuardDescription.Text {
    guard !text.text.isEmpty else {
      throw Unreadable("the line says nothing; write what it is after the word")
    }
    return text
  }

  /// A sentence with the nearest word that there is.
  private static func unknown(_ word: String, _ words: [String]) -> String {
    if let near = GuardFaults.nearest(word, words) {
      return "unknown word \"\(word)\"; did you mean \"\(near)\"?"
    }
    return
      "unknown word \"\(word)\"; it can be \(words.joined(separator: ", "))"
  }
}
