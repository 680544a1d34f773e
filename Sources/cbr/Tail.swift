// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Command {
  static let tailUsage = "usage: cbr tail [-f] [-n NUMBER] PATH"

  /// Prints the last events of a history, and those that come.
  static func tail(_ arguments: Arguments) throws -> Ending {
    let options = try TailOptions(arguments)
    Interruption.isTheEnd()
    var tail = Tail(options)
    try tail.printLast()
    while options.goesOn {
      usleep(250_000)
      tail.printNew()
    }
    return .done
  }
}

/// What `cbr tail` is asked for.
struct TailOptions {
  private(set) var path = ""
  private(set) var count: Int64 = 20
  private(set) var goesOn = false
  let isJSON: Bool

  init(_ arguments: Arguments) throws {
    isJSON = arguments.isJSON
    let problem = Problem(sentence: Command.tailUsage, ending: .usage)
    var words = arguments.words.dropFirst()
    var paths: [String] = []
    while let word = words.popFirst() {
      switch word {
      case "-f": goesOn = true
      case "-n":
        guard let number = words.popFirst().flatMap({ Int64($0) }),
          number >= 0
        else { throw problem }
        count = min(number, 1 << 40)
      default: paths.append(word)
      }
    }
    guard paths.count == 1 else { throw problem }
    path = paths[0]
  }
}

/// How far a history has been printed.
///
/// It is opened each time anew, so that nothing of it is held meanwhile.
private struct Tail {
  private let options: TailOptions
  /// The last event that was printed.
  private var seen: Int64 = 0
  /// The file, and the first run in it.
  private var place: (dev_t, ino_t)?
  private var origin = ""
  private var complaint = ""

  init(_ options: TailOptions) { self.options = options }

  mutating func printLast() throws {
    place = currentPlace
    let count = options.count
    let found = try Reader.reading(options.path) { reader in
      _ = try reader.rows("BEGIN")
      return (
        try Event.origin(reader), try Event.next(reader),
        try Event.last(count, reader)
      )
    }
    (origin, seen) = (found.0, found.1 - 1)
    print(found.2)
  }

  mutating func printNew() {
    guard noticePlace() else { return }
    do {
      let (seen, origin) = (self.seen, self.origin)
      let found = try Reader.reading(options.path) { reader in
        _ = try reader.rows("BEGIN")
        let present = try Event.origin(reader)
        return (
          present,
          try Event.after(present == origin ? seen : 0, reader)
        )
      }
      self.origin = found.0
      print(found.1)
      complaint = ""
    } catch {
      say((error as? Problem)?.sentence ?? "\(error)")
    }
  }

  private var currentPlace: (dev_t, ino_t)? {
    var found = stat()
    guard stat(options.path, &found) == 0 else { return nil }
    return (found.st_dev, found.st_ino)
  }

  /// False: there is no file at present.
  private mutating func noticePlace() -> Bool {
    guard let present = currentPlace else {
      say("\(options.path) is gone; waiting for another")
      return false
    }
    if let place, place != present {
      say("\(options.path) was replaced; going on with the new one")
    }
    place = present
    return true
  }

  /// Says something that was not just said.
  private mutating func say(_ sentence: String) {
    if sentence != complaint { complain("cbr: \(sentence)\n") }
    complaint = sentence
  }

  private mutating func print(_ events: [Event]) {
    for event in events {
      Swift.print(options.isJSON ? event.asJSON : event.line)
    }
    fflush(nil)
    if let last = events.last { seen = last.sequence }
  }
}
