// SPDX-License-Identifier: Apache-2.0

/// The library itself.
package enum Library {
  package static var version: StaticString { "0.1.0" }
}
