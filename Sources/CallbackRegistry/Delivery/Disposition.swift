// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// What a callback answers.
///
/// The values are those of `cbr_disposition`.
package enum Disposition {
  package static let goOn: Int32 = 0
  package static let stop: Int32 = 1
  package static let disconnect: Int32 = 2
  package static let allow = Int32(CBR_DISPOSITION_ALLOW)
  package static let cancel: Int32 = 4
  package static let handOver: Int32 = 5
  /// Of a handler of Swift's whose object has died: it was not called.
  package static let gone = Int32.min
}
