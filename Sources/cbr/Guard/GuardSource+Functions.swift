// SPDX-License-Identifier: Apache-2.0

/// The functions that stand in for those of the library.
extension GuardSource {
  typealias Function = GuardDescription.Function

  mutating func write(_ function: Function) {
    let prototype = function.prototype
    add(
      """
      __attribute__((visibility("default"))) \(prototype.result) \
      CBR_GUARD_FUNCTION(\(function.name))(\(Self.list(prototype))) {
      """, from: prototype.line)
    switch function.role {
    case .setter: writeSetter(function)
    case .options: writeOptions(function)
    case .ends, .resets: writeEnd(function)
    case .copies: writeCopy(function)
    case .direct: writeDirect(function)
    }
    add("}\n")
  }

  private static func arguments(_ function: Function) -> String {
    function.prototype.parameters.map(\.name).joined(separator: ", ")
  }

  /// Calls the library, and keeps its result if it has one.
  private static func call(_ function: Function, _ arguments: String) -> String
  {
    let result = function.prototype.result
    let call = "CBR_GUARD_CALL_REAL(\(function.name))(\(arguments));"
    return result == "void" ? "  \(call)" : "  \(result) result = \(call)"
  }

  private static func returnsResult(_ function: Function) -> String {
    function.prototype.result == "void" ? "  return;" : "  return result;"
  }

  /// Leaves everything to the library where nothing is guarded.
  private mutating func writeOff(_ function: Function, key: String) {
    let call =
      "CBR_GUARD_CALL_REAL(\(function.name))(\(Self.arguments(function)));"
    add("  const void *guard_caller = __builtin_return_address(0);")
    add("  if (cbr_guard_is_off(\(key), guard_caller,")
    add(
      """
                             (cbr_function)cbr_guard_real_\(function.name)())) {
      """)
    add(
      function.prototype.result == "void"
        ? "    \(call)\n    return;" : "    return \(call)")
    add("  }")
  }

  /// The object, as the library's caller has it before the call.
  private static func key(_ function: Function) -> String {
    if function.prototype.has("object"), function.object == nil {
      return "object"
    }
    return function.object.map { "(\($0.text))" } ?? "data"
  }

  private static func success(_ function: Function) -> String {
    function.success?.text ?? "true"
  }

  private mutating func writeSetter(_ function: Function) {
    let makes = !function.prototype.has("object")
    let callbacks = function.prototype.callbacks.compactMap(
      description.callback)
    writeOff(function, key: makes ? "guard_caller" : Self.key(function))
    add("  cbr_guard_set guard_set;")
    add(
      """
        cbr_guard_begin(&guard_set, \(makes ? "NULL" : Self.key(function)), \
      "\(function.name)", guard_caller);
      """)
    let data = function.prototype.has("data") ? "(void *)data" : "NULL"
    var keyed: String?
    for callback in callbacks {
      let name = callback.name
      if callback.isKeyedByData { keyed = name }
      add(
        """
          cbr_token guard_token_\(name) = cbr_guard_put(
              &guard_set, slot_\(name), (cbr_function)\(name), \(data));
          guard_\(name) guard_given_\(name) =
              \(given(callback)) \
        ? guard_call_\(name) : \(name);
          (void)guard_token_\(name);
        """)
    }
    if let keyed {
      add(
        """
          if (guard_token_\(keyed)) data = cbr_cookie(\
        guard_token_\(keyed));
        """)
    }
    let arguments = function.prototype.parameters.map {
      $0.isCallback ? "guard_given_\($0.name)" : $0.name
    }
    add(Self.call(function, arguments.joined(separator: ", ")))
    if function.returnsData {
      add("  result = cbr_guard_former(&guard_set, result);")
    }
    add("  cbr_guard_finish(&guard_set, \(Self.key(function)),")
    add(
      "                   \(Self.success(function)));",
      from: function.success?.line ?? function.prototype.line)
    for direct in description.functions where direct.role == .direct {
      add("  if (guard_set.is_known)")
      add("    CBR_GUARD_CALL_REAL(\(direct.name))(\(Self.key(function)));")
    }
    add(Self.returnsResult(function))
  }

  /// Whether the library is given the trampoline, in C.
  ///
  /// One that is found by the object stands in for what could not be registered,
  /// too.
  private func given(_ callback: GuardDescription.Callback) -> String {
    callback.isKeyedByData
      ? "guard_token_\(callback.name)"
      : "\(callback.name) && guard_set.is_known"
  }

  private mutating func writeEnd(_ function: Function) {
    writeOff(function, key: Self.key(function))
    if function.endsData {
      add("  cbr_guard_data_dies(data, \(function.waits));")
      add(Self.call(function, Self.arguments(function)))
      add(Self.returnsResult(function))
      return
    }
    add("  cbr_guard_object *guard_dying = cbr_guard_dies(")
    add("      \(Self.key(function)));", from: function.prototype.line)
    add(Self.call(function, Self.arguments(function)))
    add("  cbr_guard_died(guard_dying,")
    add(
      "                 \(Self.success(function)),",
      from: function.success?.line ?? function.prototype.line)
    add(
      function.role == .ends
        ? "                 CBR_REASON_OBJECT_DIED);"
        : "                 CBR_REASON_REPLACED);")
    add(Self.returnsResult(function))
  }

  private mutating func writeCopy(_ function: Function) {
    writeOff(function, key: Self.key(function))
    add(Self.call(function, Self.arguments(function)))
    let type = function.prototype.parameters.first { $0.name == "object" }?.type
    let options = description.functions.first {
      $0.role == .options && $0.prototype.parameters.first?.type == type
    }
    let table = options.map { "&guard_options_\($0.name)" } ?? "NULL"
    add(
      """
        cbr_guard_copy(\(Self.key(function)), result, "\(function.name)",
                       guard_caller, \(table));
      """)
    add(Self.returnsResult(function))
  }

  private mutating func writeDirect(_ function: Function) {
    writeOff(function, key: Self.key(function))
    add(Self.call(function, Self.arguments(function)))
    add("  cbr_guard_direct(\(Self.key(function)));")
    add(Self.returnsResult(function))
  }
}
