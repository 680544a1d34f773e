// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How a command ends; the values are its exit status.
enum Ending: Int32 {
  case done = 0
  /// What was asked for is not there, or a problem was found.
  case negative = 1
  case usage = 2
  /// The history cannot be opened, or not be recovered as a whole.
  case failed = 3
}

/// What is wrong, as one sentence, and how the command ends therefore.
struct Problem: Error {
  let sentence: String
  let ending: Ending
}

/// The words of a command line.
struct Arguments {
  let isJSON: Bool
  let words: [String]

  init(_ all: [String]) {
    isJSON = all.contains("--json")
    words = all.filter { $0 != "--json" }
  }

  /// The words after the command, of which there must be as many as names.
  func values(_ names: String...) throws -> [String] {
    guard words.count == names.count + 1 else {
      throw Problem(
        sentence: "usage: cbr \(words[0]) \(names.joined(separator: " "))",
        ending: .usage)
    }
    return Array(words.dropFirst())
  }
}

@main
enum Command {
  static let usage = """
    usage: cbr COMMAND [--json]
      recover PATH          take over what dead processes left beside a history
      explain TOKEN PATH    tell the life of a token
      stat PATH             say how a history is
      doctor PATH           look for what is wrong with it or around it
      tail [-f] [-n N] PATH print the last events, and with -f those to come
      verify PATH           say whether a history is as it was written
      seal PATH             have its blocks sealed from the next one on
      snapshot PATH COPY    copy a history into one file, which nobody writes
      salvage PATH COPY     copy what can be read of a damaged history
      guard DESCRIPTION     write a guard in C for a library's callbacks
      version               say which version this is
    """

  static func main() {
    let arguments = Arguments(Array(CommandLine.arguments.dropFirst()))
    do {
      exit(try run(arguments).rawValue)
    } catch let problem as Problem {
      complain("cbr: \(problem.sentence)\n")
      exit(problem.ending.rawValue)
    } catch {
      complain("cbr: \(error)\n")
      exit(Ending.failed.rawValue)
    }
  }

  static func run(_ arguments: Arguments) throws -> Ending {
    switch arguments.words.first {
    case "recover": try recover(arguments)
    case "explain": try explain(arguments)
    case "stat": try stat(arguments)
    case "doctor": try doctor(arguments)
    case "tail": try tail(arguments)
    case "verify": try verify(arguments)
    case "seal": try seal(arguments)
    case "snapshot": try snapshot(arguments)
    case "salvage": try salvage(arguments)
    case "guard": try makeGuard(arguments)
    case "version", "--version": version()
    case "help", "--help", "-h": help()
    default: throw Problem(sentence: usage, ending: .usage)
    }
  }

  private static func help() -> Ending {
    print(usage)
    return .done
  }
}
