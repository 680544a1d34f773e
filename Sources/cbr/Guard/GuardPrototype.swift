// SPDX-License-Identifier: Apache-2.0

/// A C function's type and name, as a description writes them:
/// "int start(uv_timer_t *object, @timer, uint64_t timeout)".
struct Prototype {
  struct Parameter {
    let type: String
    let name: String
    /// It is a function of the program's, for the callback of this name.
    let isCallback: Bool
  }

  let result: String
  let name: String
  let parameters: [Parameter]
  let isVariadic: Bool
  let line: Int

  func has(_ name: String) -> Bool {
    parameters.contains { $0.name == name && !$0.isCallback }
  }

  /// The callbacks that a setter takes.
  var callbacks: [String] { parameters.filter(\.isCallback).map(\.name) }

  /// Reads one, or throws a sentence.
  init(_ text: String, line: Int) throws(Unreadable) {
    guard let open = text.firstIndex(of: "("), text.last == ")" else {
      throw Unreadable(
        """
        this is no function's type and name; write it as "int name(TYPE \
        object, ...)", on one line
        """)
    }
    let head = try Self.declared(String(text[..<open]), what: "the function")
    let inner = text[text.index(after: open)...].dropLast()
    var parameters: [Parameter] = []
    var isVariadic = false
    for piece in inner.split(separator: ",", omittingEmptySubsequences: false) {
      let piece = piece.trimmed
      if isVariadic {
        throw Unreadable("nothing may follow \"...\"; move it to the end")
      }
      if piece == "..." {
        isVariadic = true
      } else if !(piece == "void" || piece.isEmpty && parameters.isEmpty) {
        parameters.append(try Self.parameter(piece))
      }
    }
    let names = parameters.map(\.name)
    if let twice = names.first(where: { name in
      names.count { $0 == name } > 1
    }) {
      throw Unreadable("two parameters are called \(twice); rename one")
    }
    (result, name) = head
    self.parameters = parameters
    self.isVariadic = isVariadic
    self.line = line
  }

  private static func parameter(
    _ piece: String
  ) throws(Unreadable) -> Parameter {
    if piece.first == "@" {
      let name = String(piece.dropFirst())
      guard name.isIdentifier else {
        throw Unreadable("\"\(piece)\" must be @ and a callback's name")
      }
      return Parameter(type: "guard_\(name)", name: name, isCallback: true)
    }
    if piece.contains(where: { "()[]".contains($0) }) {
      throw Unreadable(
        """
        the parameter "\(piece)" has an unsupported type; write @ and a \
        callback's name for the program's function, or a typedef's name
        """)
    }
    let (type, name) = try declared(piece, what: "the parameter")
    if name == "result" || name.hasPrefix("guard_") {
      throw Unreadable("a parameter may not be called \(name); rename it")
    }
    return Parameter(type: type, name: name, isCallback: false)
  }

  /// Splits "const char *name" before the name.
  private static func declared(
    _ text: String, what: String
  ) throws(Unreadable) -> (type: String, name: String) {
    let text = text[...].trimmed
    let name = String(
      text.reversed().prefix { $0.isIdentifierPart }.reversed())
    let type = text.dropLast(name.count).trimmed
    guard name.isIdentifier, !type.isEmpty,
      type.allSatisfy({ $0.isIdentifierPart || $0 == "*" || $0 == " " })
    else {
      throw Unreadable(
        "\(what) \"\(text)\" must have a type and a name, as in \"int steps\"")
    }
    guard !keywords.contains(name) else {
      throw Unreadable("\(name) is a word of C, and no name; rename it")
    }
    return (type, name)
  }

  private static let keywords: Set = [
    "auto", "break", "case", "char", "const", "continue", "default", "do",
    "double", "else", "enum", "extern", "float", "for", "goto", "if", "inline",
    "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned",
    "void", "volatile", "while",
  ]
}

/// What is wrong with a piece of a description, and what to do.
struct Unreadable: Error {
  let sentence: String

  init(_ sentence: String) {
    self.sentence = sentence
  }
}

extension Character {
  var isIdentifierPart: Bool {
    isASCII && (isLetter || isNumber) || self == "_"
  }
}

extension String {
  var isIdentifier: Bool {
    guard let first else { return false }
    return !first.isNumber && allSatisfy(\.isIdentifierPart)
  }
}

extension Substring {
  /// Without blanks at both ends.
  var trimmed: String {
    let isBlank = { (it: Character) in it == " " || it == "\t" || it == "\r" }
    let start = drop(while: isBlank)
    return String(start.reversed().drop(while: isBlank).reversed())
  }
}
