// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Computes SHA3-256 of rows as the function `sha3_query` of SQLite's shell
/// does.
///
/// That hashes `S`, the length of the query, `:` and the query; for each row
/// `R`; and for each column `N` for NULL, `I` and eight bytes, the first of
/// which is the highest, or `T`, the length of the text, `:` and the text.
///
/// A copy names the same computation. Bytes are collected, so that libcrypto
/// is not called for each column.
package struct Hash {
  private struct State {
    var used = 0
    var hasFailed = false
  }

  private static var bufferBytes: Int { 16_384 }

  private let context: UnsafeMutableRawPointer
  private let buffer: UnsafeMutableRawPointer
  private let state: UnsafeMutablePointer<State>

  /// Nil: there is no libcrypto, or no memory.
  package init?() {
    guard cbr_hash_prepare(), let context = cbr_hash_create() else {
      return nil
    }
    let buffer = Memory.allocateBytes(Self.bufferBytes)
    let state = Memory.allocate(State.self)
    guard let buffer, let state else {
      Memory.release(buffer)
      Memory.release(state)
      cbr_hash_destroy(context)
      return nil
    }
    state.initialize(to: State())
    self.context = context
    self.buffer = buffer
    self.state = state
  }

  package func destroy() {
    cbr_hash_destroy(context)
    Memory.release(buffer)
    Memory.release(state)
  }

  package func begin() {
    state.pointee.used = 0
    state.pointee.hasFailed = !cbr_hash_begin(context)
  }

  /// Begins with what a query is to answer.
  package func begin(_ query: UnsafePointer<CChar>, length: Int) {
    begin()
    append("S", query, length: length)
  }

  package func appendRow() { append(byte: UInt8(ascii: "R")) }
  package func appendNull() { append(byte: UInt8(ascii: "N")) }

  @inline(__always)
  package func append(_ integer: Int64) {
    makeRoom(for: 9)
    store(integer, at: state.pointee.used)
    state.pointee.used &+= 9
  }

  package func append(text: UnsafePointer<CChar>, length: Int) {
    append("T", text, length: length)
  }

  /// Appends a row of five integers.
  @inline(__always)
  func appendRow(_ row: (Int64, Int64, Int64, Int64, Int64)) {
    makeRoom(for: 46)
    let start = state.pointee.used
    buffer.storeBytes(
      of: UInt8(ascii: "R"), toByteOffset: start, as: UInt8.self)
    store(row.0, at: start &+ 1)
    store(row.1, at: start &+ 10)
    store(row.2, at: start &+ 19)
    store(row.3, at: start &+ 28)
    store(row.4, at: start &+ 37)
    state.pointee.used = start &+ 46
  }

  /// Appends bytes as they are.
  package func append(bytes: UnsafeRawPointer, count: Int) {
    flush()
    if !cbr_hash_add(context, bytes, count) { state.pointee.hasFailed = true }
  }

  /// Nil: libcrypto has failed.
  package func end() -> Digest? {
    var digest = Digest()
    return digest.withMutableBytes { end(into: $0) } ? digest : nil
  }

  /// The same into memory that the caller will overwrite; false: it has.
  func end(into bytes: UnsafeMutableRawPointer) -> Bool {
    flush()
    let isDone = cbr_hash_end(
      context, bytes.assumingMemoryBound(to: UInt8.self))
    return isDone && !state.pointee.hasFailed
  }

  /// Has libcrypto overwrite what it still has of a secret.
  func forget() {
    begin()
    _ = end()
  }

  private func append(
    _ kind: Unicode.Scalar, _ text: UnsafePointer<CChar>, length: Int
  ) {
    append(byte: UInt8(ascii: kind))
    appendDecimal(length)
    append(byte: UInt8(ascii: ":"))
    append(bytes: text, count: length)
  }

  private func append(byte: UInt8) {
    makeRoom(for: 1)
    buffer.storeBytes(
      of: byte, toByteOffset: state.pointee.used, as: UInt8.self)
    state.pointee.used += 1
  }

  private func appendDecimal(_ number: Int) {
    if number >= 10 { appendDecimal(number / 10) }
    append(byte: UInt8(truncatingIfNeeded: 48 + number % 10))
  }

  @inline(__always)
  private func store(_ integer: Int64, at offset: Int) {
    buffer.storeBytes(
      of: UInt8(ascii: "I"), toByteOffset: offset, as: UInt8.self)
    buffer.storeBytes(
      of: integer.bigEndian, toByteOffset: offset &+ 1, as: Int64.self)
  }

  @inline(__always)
  private func makeRoom(for bytes: Int) {
    if state.pointee.used &+ bytes > Self.bufferBytes { flush() }
  }

  private func flush() {
    let isDone = cbr_hash_add(context, buffer, state.pointee.used)
    if !isDone { state.pointee.hasFailed = true }
    state.pointee.used = 0
  }
}
