// SPDX-License-Identifier: Apache-2.0

/// The C file that a description becomes.
///
/// What is the same in all of them is
/// in callback_registry_guard.h.
struct GuardSource {
  let description: GuardDescription
  let output: String
  private(set) var text = ""
  private var lines = 0

  init(_ description: GuardDescription, output: String) {
    self.description = description
    self.output = output
    writeHead()
    for callback in description.callbacks { writeTrampoline(callback) }
    for function in description.functions {
      add("CBR_GUARD_REAL(\(function.name))")
    }
    add("")
    for function in description.functions where function.role == .options {
      writeTable(function)
    }
    for function in description.functions { write(function) }
    writeCode()
  }

  /// Adds lines of the generator's own.
  mutating func add(_ more: String) {
    text += more + "\n"
    lines += 1 + more.count { $0 == "\n" }
  }

  /// Adds a line whose faults a compiler shall find in the description.
  mutating func add(_ more: String, from line: Int) {
    add("#line \(line) \"\(Self.quoted(description.path))\"")
    add(more)
    add("#line \(lines + 2) \"\(Self.quoted(output))\"")
  }

  private static func quoted(_ name: String) -> String {
    String(name.flatMap { "\"\\".contains($0) ? ["\\", $0] : [$0] })
  }

  private static func lastPart(_ path: String) -> String {
    String(path.split(separator: "/").last ?? "")
  }

  private mutating func writeHead() {
    let name = Self.lastPart(output)
    let names = description.callbacks.map { "\"\($0.name)\"" }
      .joined(separator: ", ")
    let stem = name.hasSuffix(".c") ? String(name.dropLast(2)) : name
    add(
      """
      /* Made by "cbr guard" from \(Self.lastPart(description.path)); change \
      that instead.
       *
       * A library for LD_PRELOAD:
       *   cc -shared -fPIC -fexceptions -O2 -o \(stem).so \(name) \\
       *     $(pkg-config --cflags --libs callbackregistry)
       * Part of a program:
       *   cc -c -fexceptions -O2 -DCBR_GUARD_WRAP \(name)
       *   cc ... \(stem).o $(cbr guard --wrap \
      \(Self.lastPart(description.path))) \\
       *     $(pkg-config --libs callbackregistry)
       */
      #ifndef _GNU_SOURCE
      #define _GNU_SOURCE 1
      #endif
      #define CBR_GUARD_LIBRARY "\(description.label)"
      #define CBR_GUARD_SONAME "\(description.library?.text ?? "")"
      #define CBR_GUARD_SLOTS \(max(1, description.callbacks.count))
      #define CBR_GUARD_NAMES \(names.isEmpty ? "\"\"" : names)
      #define CBR_GUARD_OWN \(description.isOwn ? 1 : 0)
      #include <callback_registry_guard.h>
      """)
    for header in description.includes {
      add("#include \(header.text)", from: header.line)
    }
    add("\n/* Old programs use what is deprecated. */")
    add("#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    add("\n/* A macro would hide the function. */")
    for name in description.wrapped { add("#undef \(name)") }
    let slots = description.callbacks.map { "slot_\($0.name)" }
    if !slots.isEmpty {
      add("\nenum { \(slots.joined(separator: ", ")) };\n")
    }
  }

  private mutating func writeTrampoline(_ callback: GuardDescription.Callback) {
    let signature = callback.signature
    let name = callback.name
    let parameters = Self.list(signature)
    add(
      "typedef \(signature.result) (*guard_\(name))(\(parameters));",
      from: signature.line)
    add("static \(signature.result) guard_call_\(name)(\(parameters)) {")
    add("  CBR_GUARD_CALL(guard_it) =")
    add(
      callback.isKeyedByData
        ? "      cbr_guard_enter(cbr_from_cookie(data), slot_\(name));"
        : "      cbr_guard_enter_object(object, slot_\(name));")
    if let answer = callback.answer {
      add("  if (!guard_it.function) {")
      add(
        callback.isVoid
          ? "    \(answer.text);\n    return;"
          : "    return (\(signature.result))(\(answer.text));",
        from: answer.line)
      add("  }")
    } else {
      add("  if (!guard_it.function) return;")
    }
    if callback.jumps { add("  cbr_guard_leave_early(&guard_it);") }
    if callback.isKeyedByData { add("  data = guard_it.data;") }
    let arguments = signature.parameters.map { parameter in
      if parameter.name == "object", let passes = callback.passes {
        return "guard_it.is_direct ? object : (\(passes.text))"
      }
      return parameter.name
    }
    let call =
      "((guard_\(name))guard_it.function)(\(arguments.joined(separator: ", ")));"
    add((callback.isVoid ? "  " : "  return ") + call)
    add("}\n")
  }

  private mutating func writeCode() {
    guard let first = description.code.first else { return }
    add(
      description.code.map(\.text).joined(separator: "\n"), from: first.line)
  }

  /// Parameters with their types.
  static func list(_ prototype: Prototype) -> String {
    var all = prototype.parameters.map { parameter in
      let gap = parameter.type.hasSuffix("*") ? "" : " "
      return "\(parameter.type)\(gap)\(parameter.name)"
    }
    if prototype.isVariadic { all.append("...") }
    return all.isEmpty ? "void" : all.joined(separator: ", ")
  }
}
