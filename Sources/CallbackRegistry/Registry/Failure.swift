// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// The last error of a thread.
extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Remembers a status and its sentence.
  package func fail(
    _ status: Status, _ build: (inout Text) -> Void
  ) -> Status {
    var text = Text(errorText, size: ThreadRecord.errorBytes)
    build(&text)
    pointee.error = ErrorRecord()
    pointee.error.status = status
    pointee.error.hasText = true
    return status
  }

  /// Remembers a status whose sentence is about handles, and is made when it is
  /// asked for.
  ///
  /// What the failing check itself has just said is kept.
  package func fail(
    _ status: Status, about handle: UInt64 = Handle.none,
    other: UInt64 = Handle.none, thread: UInt32 = 0
  ) -> Status {
    if pointee.error.isFresh, pointee.error.status == status {
      pointee.error.isFresh = false
      return status
    }
    pointee.error = ErrorRecord()
    pointee.error.status = status
    pointee.error.handle = handle
    pointee.error.other = other
    pointee.error.thread = thread
    return status
  }

  /// A wait for a handle would close a ring of waiting threads.
  ///
  /// The sentence is made at once: the ring will not last.
  func fail(
    _ status: Status, about handle: UInt64, ring: WaitRing
  ) -> Status {
    _ = fail(status) { text in
      text.append(status.text)
      text.append(": ")
      Describing.describe(handle, thread: self, into: &text)
      guard ring.count > 0 else {
        text.append("; this thread itself is inside it")
        return
      }
      text.append("; the ring goes through ")
      var isFirst = true
      ring.visitMembers { member in
        if !isFirst { text.append(", ") }
        isFirst = false
        Describing.describe(member.waitsFor, thread: self, into: &text)
        text.append(" on thread ")
        text.append(member.thread)
      }
      if ring.others > 0 {
        text.append(" and ")
        text.append(ring.others)
        text.append(" more")
      }
    }
    pointee.error.handle = handle
    return status
  }

  /// An argument is at fault.
  ///
  /// To be thrown.
  func invalid(_ build: (inout Text) -> Void) -> Status {
    toThrow(fail(.invalid, build))
  }

  /// Keeps what was just said about a status, whatever handle the one who
  /// catches it is about.
  func toThrow(_ status: Status) -> Status {
    pointee.error.isFresh = true
    return status
  }

  func invalid(_ sentence: StaticString) -> Status {
    invalid { text in text.append(sentence) }
  }

  func checkText(
    _ text: UnsafePointer<CChar>?, _ name: StaticString, limit: Int,
    rule: TextRule = .name
  ) throws(Status) {
    guard let text else { return }
    // Looked at a little further, to say how long it is.
    let bytes = length(of: text, limit: limit * 16)
    guard bytes > limit else {
      return try checkBytes(text, length: bytes, name, rule: rule)
    }
    throw invalid { sentence in
      sentence.append(name)
      sentence.append(" is ")
      sentence.append(bytes)
      sentence.append(bytes == limit * 16 ? " or more bytes" : " bytes")
      sentence.append("; the limit is ")
      sentence.append(limit)
    }
  }

  private func checkBytes(
    _ text: UnsafePointer<CChar>, length: Int, _ name: StaticString,
    rule: TextRule
  ) throws(Status) {
    guard let index = firstBadByte(text, length: length, rule: rule) else {
      return
    }
    throw invalid { sentence in
      sentence.append("byte ")
      sentence.append(index)
      sentence.append(" of ")
      sentence.append(name)
      sentence.append(" is ")
      sentence.append(UInt64(UInt8(bitPattern: text[index])))
      sentence.append("; it must be UTF-8")
      if rule == .name { sentence.append(" without control characters") }
    }
  }
}

package enum LastError {
  /// The sentence about the calling thread's last status that was not OK.
  package static func text() -> UnsafePointer<CChar> {
    guard let thread = Process.currentThread() else {
      return Status.noMemory.text.characters
    }
    let error = thread.pointee.error
    guard error.status != .ok, !error.hasText else {
      return UnsafePointer(thread.errorText)
    }
    var text = Text(thread.errorText, size: ThreadRecord.errorBytes)
    Self.describe(error, thread: thread, into: &text)
    thread.pointee.error = error
    thread.pointee.error.hasText = true
    return UnsafePointer(thread.errorText)
  }

  /// Makes the sentence about a failure.
  package static func describe(
    _ error: ErrorRecord, thread: ThreadPointer, into text: inout Text
  ) {
    text.append(error.status.text)
    guard error.handle != Handle.none else {
      if error.status == .invalid { text.append(": the handle is CBR_NONE") }
      return
    }
    text.append(": ")
    Describing.describe(error.handle, thread: thread, into: &text)
    guard error.other != Handle.none else { return }
    text.append("; still inside ")
    Describing.describe(error.other, thread: thread, into: &text)
    guard error.thread != 0 else { return }
    text.append(" on thread ")
    text.append(error.thread)
  }
}
