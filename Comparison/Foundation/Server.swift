// SPDX-License-Identifier: Apache-2.0
import Foundation

/// An HTTP server on the loopback interface, a thread for each connection.
///
/// It answers /pieces/bytes/milliseconds with so many pieces of so many bytes,
/// and so long a pause after each; it ends with its process.
struct Server: Sendable {
  let port: UInt16

  init() {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) != 0 || listen(listener, 16) != 0
          || getsockname(listener, address, &size) != 0
      }
    }
    guard !failed else { fatalError("there is no loopback interface") }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { continue }
        Thread.detachNewThread { Self.serve(connection) }
      }
    }
  }

  func url(of work: Work) -> URL {
    URL(
      string: "http://127.0.0.1:\(port)/\(work.pieces)/\(work.bytes)/"
        + "\(work.milliseconds)")!
  }

  private static func serve(_ connection: Int32) {
    defer { close(connection) }
    var request = ""
    while !request.contains("\r\n\r\n") {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = recv(connection, &bytes, bytes.count, 0)
      guard count > 0 else { return }
      request += String(decoding: bytes.prefix(count), as: UTF8.self)
    }
    let path = request.split(separator: " ")[1]
    let numbers = path.split(separator: "/").compactMap { Int($0) }
    let head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
      + "Content-Length: \(numbers[0] * numbers[1])\r\n"
      + "Connection: close\r\n\r\n"
    let piece = [UInt8](repeating: 0, count: numbers[1])
    guard send(Array(head.utf8), to: connection) else { return }
    for _ in 0..<numbers[0] {
      guard send(piece, to: connection) else { return }
      usleep(UInt32(numbers[2]) * 1000)
    }
  }

  private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(
          connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
