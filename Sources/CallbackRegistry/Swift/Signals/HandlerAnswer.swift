// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What a handler that answers wants to be done.
  public enum HandlerAnswer: Int32, Sendable {
    /// The next handler is called.
    case goOn = 0
    /// The emission ends here: no further handler is called.
    case stop = 1
    /// This handler ends, and the next one is called.
    case disconnect = 2
  }
#endif
