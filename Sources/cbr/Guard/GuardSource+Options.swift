// SPDX-License-Identifier: Apache-2.0

/// Setters that take options, one for a function and one for its data.
extension GuardSource {
  /// The table of a setter's pairs, and how they are told to the library.
  mutating func writeTable(_ function: Function) {
    let name = function.name
    let types = function.prototype.parameters.map(\.type)
    for pair in function.pairs {
      guard let without = description.callback(pair.callback)?.without else {
        continue
      }
      add("static void *guard_without_\(pair.callback)(void) {")
      add("  return (void *)(\(without.text));", from: without.line)
      add("}\n")
    }
    add("static const cbr_guard_option guard_pairs_\(name)[] = {")
    for pair in function.pairs {
      add(Self.row(pair, description), from: pair.line)
    }
    add(
      """
      };

      static int guard_apply_\(name)(void *object, long option, void *value) {
        return (int)CBR_GUARD_CALL_REAL(\(name))(
            (\(types[0]))object, (\(types[1]))option, value);
      }

      static bool guard_success_\(name)(int guard_result) {
        \(function.prototype.result) result = \
      (\(function.prototype.result))guard_result;
        (void)result;
      """)
    add(
      "  return \(function.success?.text ?? "true");",
      from: function.success?.line ?? function.prototype.line)
    add(
      """
      }

      static const cbr_guard_options guard_options_\(name) = {
          "\(name)", guard_pairs_\(name), \(function.pairs.count),
          guard_apply_\(name), guard_success_\(name)};

      """)
  }

  private static func row(
    _ pair: GuardDescription.Pair, _ description: GuardDescription
  ) -> String {
    let callback = description.callback(pair.callback)
    let otherwise = callback?.otherwise.map { "slot_\($0.text)" } ?? "-1"
    let without =
      callback?.without == nil ? "NULL" : "guard_without_\(pair.callback)"
    return """
      {\(pair.function), \(pair.data), slot_\(pair.callback), \(otherwise), \
      (cbr_function)guard_call_\(pair.callback), \(without)},
      """
  }

  /// An argument of any type is taken as one machine word, which is what the
  /// 64-bit calling conventions pass it as.
  mutating func writeOptions(_ function: Function) {
    let name = function.name
    add(
      """
        const void *guard_caller = __builtin_return_address(0);
        va_list guard_list;
        va_start(guard_list, option);
        void *guard_value = va_arg(guard_list, void *);
        va_end(guard_list);
        _Static_assert(sizeof(long) == 8 && sizeof(void *) == 8,
                       "options are guarded where all arguments have 64 bits");
        if (!cbr_guard_pair(&guard_options_\(name), (long)option) ||
            cbr_guard_is_off(object, guard_caller,
                             (cbr_function)cbr_guard_real_\(name)()))
          return CBR_GUARD_CALL_REAL(\(name))(object, option, guard_value);
        return (\(function.prototype.result))cbr_guard_set_option(
            &guard_options_\(name), object, (long)option, guard_value,
            guard_caller);
      """)
  }
}
