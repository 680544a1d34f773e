// SPDX-License-Identifier: Apache-2.0
//
// A closure of the main actor's is one that refuses to be called elsewhere. The
// actor's executor is asked where the caller is; that of Dispatch does not
// know, and then its main queue is.

#if !hasFeature(Embedded)
  import Dispatch

  extension Registry {
    /// Registers a closure that runs on the main actor.
    ///
    /// It can be called by code of the main actor, and by queues that deliver
    /// there (``CallQueue/Place/main``). Elsewhere a call throws
    /// `wrongThread`, and what a queue delivers is dropped: nothing waits for
    /// the main actor. One that is ``CallbackOptions/oneShot`` is used up by
    /// it.
    ///
    ///     let ui = try CallQueue("ui", in: registry, on: .main)
    ///     let show = try registry.registerOnMain("show") {
    ///       (line: String) in label.text = line
    ///     }.keep()
    ///     try ui.post(show, "done")
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called, with any number of inputs.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for any closure.
    public func registerOnMain<each Input: Sendable, Output: Sendable>(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @MainActor @Sendable (repeat each Input) -> Output
    ) throws(RegistryError) -> Registration<(repeat each Input), Output> {
      typealias Inputs = (repeat each Input)
      let box = ClosureBox(
        inputSize: MemoryLayout<Inputs>.size,
        outputSize: MemoryLayout<Output>.size, isOnMain: true
      ) { input, output in
        // Addresses are not Sendable; they do not leave this thread.
        nonisolated(unsafe) let (input, output) = (input, output)
        MainActor.assumeIsolated {
          let input = input.assumingMemoryBound(to: Inputs.self).pointee
          output.initializeMemory(
            as: Output.self, to: body(repeat each input))
        }
        return true
      }
      let handle = try add(
        box, CallbackTraits(label, options, level, file, line),
        owner: owner?.handle ?? Handle.none,
        tag: Token<Inputs, Output>.typeTag)
      return Registration(Token(registered: handle))
    }
  }

  enum MainPlace {
    private static let key: DispatchSpecificKey<Bool> = {
      let key = DispatchSpecificKey<Bool>()
      DispatchQueue.main.setSpecific(key: key, value: true)
      return key
    }()

    /// Whether the caller is on the main actor, as far as can be told.
    static var isHere: Bool {
      let executor = MainActor.sharedUnownedExecutor.asSerialExecutor()
      if let answer = executor?.isIsolatingCurrentContext() { return answer }
      return DispatchQueue.getSpecific(key: key) ?? false
    }
  }
#endif
