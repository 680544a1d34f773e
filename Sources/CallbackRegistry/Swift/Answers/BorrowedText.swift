// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Lends text to the engine, for which it ends at a zero.
  ///
  /// Text with a zero in it is refused, rather than cut.
  func withText(
    _ text: String, _ name: StaticString,
    _ body: (UnsafePointer<CChar>) -> Status
  ) -> Status {
    guard text.utf8.contains(0) else { return text.withCString(body) }
    guard let thread = Process.currentThread() else { return .noMemory }
    return thread.fail(.invalid) { sentence in
      sentence.append(name)
      sentence.append(" contains a zero")
    }
  }

  extension StaticString {
    /// The file of a site as C sees it; nil when it is a single character.
    var filePath: UnsafePointer<CChar>? {
      hasPointerRepresentation ? characters : nil
    }
  }
#endif
