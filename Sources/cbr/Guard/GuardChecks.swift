// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds what would make a guard that cannot work.
struct GuardChecks {
  private let description: GuardDescription
  private(set) var faults: GuardFaults
  /// Whether what is missing may be in a line that could not be read.
  private let isIncomplete: Bool

  init(_ description: GuardDescription, _ faults: GuardFaults) {
    self.description = description
    self.faults = faults
    isIncomplete = !faults.isEmpty
    checkWhole()
    for callback in description.callbacks { check(callback) }
    for function in description.functions { check(function) }
    checkNames()
    checkSymbols()
  }

  private mutating func checkWhole() {
    if description.library == nil {
      faults.add(
        0, "there is no library; add a line like \"library libx.so.1\"")
    }
    if description.includes.isEmpty {
      faults.add(0, "there is no header; add a line like \"include <x.h>\"")
    }
    let isSet = description.functions.contains {
      $0.role == .setter || $0.role == .options
    }
    if !isSet && description.code.isEmpty && !isIncomplete {
      faults.add(0, "nothing sets a callback; add a line \"setter ...\"")
    }
  }

  private mutating func check(_ callback: GuardDescription.Callback) {
    let line = callback.signature.line
    let signature = callback.signature
    if signature.isVariadic {
      faults.add(
        line,
        """
        callback \(callback.name) takes any number of arguments, which cannot \
        be passed on; leave it out, or guard it in C below "code"
        """)
    } else if !callback.isKeyedByData && !signature.has("object") {
      faults.add(
        line,
        """
        callback \(callback.name) has no parameter called data or object, so \
        that one call cannot be told from another; give one of its parameters \
        that name, or use a thunk (cbr_thunk_create)
        """)
    }
    if let nested = signature.callbacks.first {
      faults.add(
        line, "@\(nested) is for setters; write a typedef's name here")
    }
    if !callback.isVoid && callback.answer == nil {
      faults.add(
        line,
        """
        what a late call of \(callback.name) answers is missing; add a line \
        like "  default 0" below
        """)
    }
    if let other = callback.otherwise,
      description.callback(other.text) == nil
    {
      faults.add(other.line, unknown(other.text))
    }
    let isSet = description.functions.contains { function in
      function.prototype.callbacks.contains(callback.name)
        || function.pairs.contains { $0.callback == callback.name }
    }
    if !isSet && description.code.isEmpty && !isIncomplete {
      faults.add(
        line,
        "no setter sets \(callback.name); add one that takes @\(callback.name)")
    }
  }

  private mutating func check(_ function: GuardDescription.Function) {
    let line = function.prototype.line
    let prototype = function.prototype
    if prototype.isVariadic != (function.role == .options) {
      faults.add(
        line,
        prototype.isVariadic
          ? """
          \(function.name) takes any number of arguments, which cannot be \
          passed on; if it sets options, write "options" instead of \
          "\(function.role.rawValue)"
          """
          : "options need a function that ends with \"...\"; or write setter")
    }
    for name in prototype.callbacks where description.callback(name) == nil {
      faults.add(line, unknown(name))
    }
    switch function.role {
    case .setter: checkSetter(function)
    case .options: checkOptions(function)
    case .ends:
      if !prototype.has("object") && !prototype.has("data") {
        faults.add(
          line,
          """
          what dies is missing; call that parameter of \(function.name) object, \
          or data if it is what callbacks are given
          """)
      }
    case .resets, .copies, .direct:
      if !prototype.has("object") {
        faults.add(
          line, "call the parameter of \(function.name) that is meant object")
      }
    }
    if function.success != nil && prototype.result == "void" {
      faults.add(
        line,
        "\(function.name) has no result; remove its line \"success\"")
    }
  }

  private mutating func checkSetter(_ function: GuardDescription.Function) {
    let line = function.prototype.line
    let names = function.prototype.callbacks
    if names.isEmpty {
      faults.add(
        line,
        """
        \(function.name) takes no callback; write @ and a callback's name \
        where it takes the program's function
        """)
    } else if names.count > 4 {
      faults.add(line, "a setter may take four callbacks; leave some out")
    }
    if !function.prototype.has("object") && function.object == nil {
      faults.add(
        line,
        """
        whose callback \(function.name) sets is missing; call that parameter \
        object, or add a line "  object result" below if it makes the object
        """)
    }
    let keyed = names.filter {
      description.callback($0)?.isKeyedByData ?? false
    }
    if !keyed.isEmpty && !function.prototype.has("data") {
      faults.add(
        line,
        """
        callback \(keyed[0]) is given data, and \(function.name) takes none; \
        call that parameter data, or give the callback an object parameter
        """)
    }
    if keyed.count > 1 {
      faults.add(
        line,
        """
        \(keyed[0]) and \(keyed[1]) would share one data parameter, which can \
        name only one of them; give them object parameters
        """)
    }
  }

  private mutating func checkOptions(_ function: GuardDescription.Function) {
    let line = function.prototype.line
    if function.prototype.parameters.map(\.name) != ["object", "option"] {
      faults.add(
        line, "options need the parameters object, option and \"...\"")
    }
    if function.pairs.isEmpty {
      faults.add(
        line,
        "no option is named; add lines like \"  pair NAME FUNCTION DATA\"")
    }
    for pair in function.pairs {
      guard let callback = description.callback(pair.callback) else {
        faults.add(pair.line, unknown(pair.callback))
        continue
      }
      if !callback.isKeyedByData {
        faults.add(
          pair.line,
          "callback \(pair.callback) must have a parameter called data")
      }
    }
  }

  private func unknown(_ name: String) -> String {
    let names = description.callbacks.map(\.name)
    if let near = GuardFaults.nearest(name, names) {
      return "no callback is called \(name); did you mean \(near)?"
    }
    return "no callback is called \(name); add a line \"callback TYPE "
      + "\(name)(...)\""
  }

  private mutating func checkNames() {
    var lines: [String: Int] = [:]
    for prototype in description.callbacks.map(\.signature)
      + description.functions.map(\.prototype)
    {
      if let first = lines[prototype.name] {
        faults.add(
          prototype.line,
          "\(prototype.name) was described in line \(first); remove one")
      }
      lines[prototype.name] = prototype.line
    }
    for callback in description.callbacks
    where ["object", "data", "option", "result"].contains(callback.name) {
      faults.add(
        callback.signature.line,
        "a callback may not be called \(callback.name); rename it")
    }
  }

  /// Where the library is installed, asks it for each function.
  private mutating func checkSymbols() {
    guard let library = description.library,
      let opened = dlopen(library.text, RTLD_LAZY | RTLD_LOCAL)
    else { return }
    for function in description.functions
    where !function.endsData && !function.isOfProgram
      && dlsym(opened, function.name) == nil
    {
      faults.add(
        function.prototype.line,
        """
        \(library.text) has no function \(function.name); correct the name, \
        remove the line, or add "  program" below a function of your own
        """)
    }
  }
}
