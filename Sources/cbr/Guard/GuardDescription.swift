// SPDX-License-Identifier: Apache-2.0

/// What a description says of a library and its callbacks.
struct GuardDescription {
  /// A piece of C, and where it was written.
  struct Text {
    let text: String
    let line: Int
  }

  /// A place for one function of the program's.
  struct Callback {
    let signature: Prototype
    /// What a late call answers; what it does, where nothing is answered.
    var answer: Text?
    /// What the function is given when the program has set no data.
    var without: Text?
    /// The callback whose function is called for data without a function.
    var otherwise: Text?
    /// What the function is given in place of the object.
    var passes: Text?
    /// Whether it may leave by longjmp.
    var jumps = false

    var name: String { signature.name }
    var isKeyedByData: Bool { signature.has("data") }
    var isVoid: Bool { signature.result == "void" }
  }

  /// What a function of the library does to callbacks.
  enum Role: String {
    case setter
    case options
    case ends
    case resets
    case copies
    case direct
  }

  /// Two options that set a callback.
  struct Pair {
    let callback: String
    let function: String
    let data: String
    let line: Int
  }

  struct Function {
    let role: Role
    let prototype: Prototype
    /// How the object is found, where it is not a parameter called so.
    var object: Text?
    /// Whether it has done what it was asked to do.
    var success: Text?
    /// Whether it answers the former user data.
    var returnsData = false
    /// Whether it waits for calls in flight before the user data dies.
    var waits = false
    /// It is a function of the program's own, not of the library's.
    var isOfProgram = false
    var pairs: [Pair] = []

    var name: String { prototype.name }
    /// What dies is the user data.
    var endsData: Bool { role == .ends && !prototype.has("object") }
  }

  var path = ""
  var library: Text?
  var includes: [Text] = []
  /// The registry uses the library, too.
  var isOwn = false
  var callbacks: [Callback] = []
  var functions: [Function] = []
  /// C that is copied as it is.
  var code: [Text] = []

  func callback(_ name: String) -> Callback? {
    callbacks.first { $0.name == name }
  }

  /// The library's name without what follows ".so".
  var label: String {
    let name = library?.text ?? ""
    var end = name.startIndex
    while end < name.endIndex, !name[end...].hasPrefix(".so") {
      end = name.index(after: end)
    }
    return String(name[..<end])
  }

  /// The names that --wrap needs.
  var wrapped: [String] {
    functions.map(\.name) + code.compactMap { Self.replaced(in: $0.text) }
  }

  /// The function that a line of C replaces: "CBR_GUARD_REAL(name)" says so.
  private static func replaced(in line: String) -> String? {
    let mark = "CBR_GUARD_REAL("
    guard line.hasPrefix(mark), let end = line.firstIndex(of: ")") else {
      return nil
    }
    return String(line[line.index(line.startIndex, offsetBy: mark.count)..<end])
  }
}
