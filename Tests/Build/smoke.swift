// SPDX-License-Identifier: Apache-2.0
// An ordinary Swift program that links the C library's archive beside the
// real Swift runtime; arrays, classes and existentials make it use the latter.

import CCallbackRegistry

protocol Numbers { func all() -> [Int] }
final class Some: Numbers { func all() -> [Int] { [3, 1, 2].sorted() } }

let numbers: any Numbers = Some()
print(String(cString: cbr_status_name(0)), numbers.all())
