// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

extension Command {
  /// Takes over what dead processes have left in their rings.
  static func recover(_ arguments: Arguments) throws -> Ending {
    let path = try arguments.values("PATH")[0]
    // Starts the library, which finds out how to check records fast.
    _ = Process.currentThread()
    let report = try withHistory(path) { absolute, status, problem in
      RecoveryWatch.during(path) {
        HistoryFile.recover(absolute, status: &status, problem: &problem)
      }
    }
    guard let report else { return .failed }
    if arguments.isJSON {
      print(
        """
        {"recovered": \(report.recovered), "in_use": \(report.inUse), \
        "set_aside": \(report.setAside), "failed": \(report.failed)}
        """)
    } else {
      print("dead processes recovered: \(report.recovered)")
      if report.inUse > 0 {
        print("processes that write now: \(report.inUse)")
      }
      if report.setAside > 0 {
        print("unreadable files set aside: \(report.setAside); see fault")
      }
      if report.failed > 0 {
        print("files left for the next time: \(report.failed); see fault")
      }
    }
    return report.failed > 0 ? .failed : .done
  }
}
