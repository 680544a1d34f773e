// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Says what went wrong, or what became of something, in words.
  ///
  /// It is a few numbers until it is read: the texts are made when they are
  /// asked for, from what the registry and its history know at that moment.
  public struct Explanation: Sendable {
    /// What it is about; 0 when it is about no handle.
    public let handle: UInt64
    private let status: Status
    private let other: UInt64
    private let thread: UInt32
    /// A sentence that only the failing check could write.
    private let text: String?
    /// What the sentence says instead of the status's text.
    private let words: StaticString?

    /// The life of a handle; nothing has gone wrong.
    init(of handle: UInt64) {
      self.handle = handle
      status = .ok
      other = Handle.none
      thread = 0
      text = nil
      words = nil
    }

    private init(_ error: ErrorRecord, about handle: UInt64, text: String?) {
      self.handle = error.handle == Handle.none ? handle : error.handle
      status = error.status
      other = error.other
      thread = error.thread
      self.text = text
      words = nil
    }

    /// Says what has become of a handle in words that no status has.
    init(_ words: StaticString, about handle: UInt64) {
      self.handle = handle
      self.words = words
      status = .user
      other = Handle.none
      thread = 0
      text = nil
    }

    /// Keeps what the calling thread knows of its last status.
    static func last(_ status: Status, about handle: UInt64) -> Explanation {
      var error = ThreadPointer.current?.pointee.error ?? ErrorRecord()
      if error.status != status {
        error = ErrorRecord()
        error.status = status
      }
      let text = error.hasText ? String(cString: LastError.text()) : nil
      return Explanation(error, about: handle, text: text)
    }

    /// One sentence, naming the registration or the argument at fault; where
    /// nothing is at fault, what it is and whether it is live.
    public var sentence: String {
      if let text { return text }
      if status == .ok, let first = story.split(separator: "\n").first {
        return String(first)
      }
      guard let thread = Process.currentThread() else {
        return "\(words ?? status.text)"
      }
      var error = ErrorRecord()
      error.status = status
      error.handle = handle
      error.other = other
      error.thread = self.thread
      return written(atMost: ThreadRecord.errorBytes) { start, size in
        var text = Text(start, size: size)
        if let words {
          text.append(words)
          text.append(": ")
          Describing.describe(handle, thread: thread, into: &text)
        } else {
          LastError.describe(error, thread: thread, into: &text)
        }
        return text.length + 1
      }
    }

    /// The whole life of what it is about, in lines: kind, label, owner, where,
    /// when and by which thread it was registered and ended and why, its calls
    /// and the late callers.
    ///
    /// Empty when nothing is known of it any more.
    public var story: String {
      guard handle != Handle.none else { return "" }
      return written(atMost: 2_048) { start, size in
        var needed = 0
        _ = Explaining.explain(handle, start, size: size, needed: &needed)
        return needed
      }
    }

    /// Lets `write` fill memory, twice when it says that it needs more.
    private func written(
      atMost size: Int,
      _ write: (UnsafeMutablePointer<CChar>, Int) -> Int
    ) -> String {
      let (text, needed) = withUnsafeTemporaryAllocation(
        of: CChar.self, capacity: size
      ) { room in
        let start = room.baseAddress.unsafelyUnwrapped
        start.pointee = 0
        let needed = write(start, size)
        return (String(cString: start), needed)
      }
      guard needed > size else { return text }
      // It may have grown meanwhile; then it is cut.
      return written(atMost: needed * 2) { start, size in
        min(write(start, size), size)
      }
    }
  }

  extension Explanation: CustomStringConvertible {
    /// The sentence, if something went wrong, and the story.
    public var description: String {
      let story = story
      if status == .ok { return story }
      return story.isEmpty ? sentence : "\(sentence)\n\(story)"
    }
  }

  /// A handle as people write it.
  func hexadecimal(_ handle: UInt64) -> String {
    let digits = String(handle, radix: 16)
    return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
  }
#endif
