// SPDX-License-Identifier: Apache-2.0
//
// The same scripts on Foundation and on this library:
//
//   compare-foundation PAGE           prints the tables, and writes them to
//                                     the page
//   compare-foundation --check PAGE   compares them with what is on the page
//
// Fails when this library does not do what its header says; what Foundation
// does is only told.
import Foundation

let scripts = centreScripts + sessionScripts

var arguments = CommandLine.arguments.dropFirst()
if arguments.first == "--run" {
  let words = Array(arguments)
  guard words.count == 3, let number = Int(words[1]),
    scripts.indices.contains(number), let side = Side(rawValue: words[2])
  else { exit(2) }
  runHere(number, on: side)
}
let checks = arguments.first == "--check"
if checks { arguments.removeFirst() }
guard arguments.count == 1, let path = arguments.first else {
  print("usage: compare-foundation [--check] PAGE")
  exit(2)
}

let page = Page(
  checks ? runAll(times: 1, races: 3) : runAll(times: 5, races: 40))
print(page.tables)
var (passed, failed) = page.judge()
if checks {
  let asPublished = page.compare(with: try Page.rows(at: path))
  passed += asPublished ? 1 : 0
  failed += asPublished ? 0 : 1
} else if failed == 0 {
  try page.text.write(toFile: path, atomically: true, encoding: .utf8)
}
print("\(passed) passed, \(failed) failed")
exit(failed == 0 ? 0 : 1)
