// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CPlatform
import CallbackRegistry
import Testing

/// The header and the engine each write down the same structures and numbers.
///
/// A structure that crosses the border as it is has one layout on both sides,
/// and every number has one meaning.
@Suite struct LayoutTests {
  /// Where a structure of the engine has a field, and where C has it.
  private struct Field {
    let name: String
    let engine: Int?
    let header: Int?

    init(_ name: String, _ engine: Int?, _ header: Int?) {
      self.name = name
      self.engine = engine
      self.header = header
    }
  }

  private func compare<Engine, Header>(
    _ engine: Engine.Type, _ header: Header.Type, _ fields: [Field]
  ) {
    #expect(MemoryLayout<Engine>.size == MemoryLayout<Header>.size)
    #expect(MemoryLayout<Engine>.stride == MemoryLayout<Header>.stride)
    #expect(MemoryLayout<Engine>.alignment == MemoryLayout<Header>.alignment)
    for field in fields {
      #expect(field.engine != nil, "\(field.name) has no place")
      #expect(field.engine == field.header, "\(field.name)")
    }
  }

  @Test func aCallIsACallRecord() {
    typealias Engine = MemoryLayout<CallRecord>
    typealias Header = MemoryLayout<cbr_call>
    compare(
      CallRecord.self, cbr_call.self,
      [
        Field(
          "function", Engine.offset(of: \.function),
          Header.offset(of: \.function)),
        Field(
          "context", Engine.offset(of: \.context),
          Header.offset(of: \.context)),
        Field("token", Engine.offset(of: \.token), Header.offset(of: \.token)),
        Field(
          "disposition", Engine.offset(of: \.disposition),
          Header.offset(of: \.disposition)),
        Field(
          "pin", Engine.offset(of: \.pin), Header.offset(of: \.reserved)),
      ])
    // An _INIT call is an empty one.
    let initial = cbr_call()
    #expect(initial.token == CallRecord.empty.token)
    #expect(CallRecord.empty.pin == 0 && CallRecord.empty.function == nil)
  }

  @Test func anItemIsAnItem() {
    typealias Engine = MemoryLayout<Item>
    typealias Header = MemoryLayout<cbr_item>
    compare(
      Item.self, cbr_item.self,
      [
        Field("size", Engine.offset(of: \.size), Header.offset(of: \.size)),
        Field(
          "handle", Engine.offset(of: \.handle), Header.offset(of: \.handle)),
        Field("kind", Engine.offset(of: \.kind), Header.offset(of: \.kind)),
        Field("line", Engine.offset(of: \.line), Header.offset(of: \.line)),
        Field("label", Engine.offset(of: \.label), Header.offset(of: \.label)),
        Field("file", Engine.offset(of: \.file), Header.offset(of: \.file)),
        Field("owner", Engine.offset(of: \.owner), Header.offset(of: \.owner)),
        Field(
          "age_ns", Engine.offset(of: \.ageNanoseconds),
          Header.offset(of: \.age_ns)),
        Field(
          "calls_in_flight", Engine.offset(of: \.callsInFlight),
          Header.offset(of: \.calls_in_flight)),
        Field(
          "leases", Engine.offset(of: \.leases), Header.offset(of: \.leases)),
      ])
  }

  @Test func aMethodIsAMethodDescription() {
    typealias Engine = MemoryLayout<MethodDescription>
    typealias Header = MemoryLayout<cbr_method>
    compare(
      MethodDescription.self, cbr_method.self,
      [
        Field("name", Engine.offset(of: \.name), Header.offset(of: \.name)),
        Field("flags", Engine.offset(of: \.flags), Header.offset(of: \.flags)),
        Field(
          "default_disposition", Engine.offset(of: \.defaultDisposition),
          Header.offset(of: \.default_disposition)),
      ])
    #expect(MethodDescription.required == UInt32(CBR_METHOD_REQUIRED))
    #expect(MethodDescription.hasDefault == UInt32(CBR_METHOD_DEFAULT))
  }

  @Test func statisticsAreStatistics() {
    typealias Engine = MemoryLayout<Statistics>
    typealias Header = MemoryLayout<cbr_statistics>
    let numbers:
      [(
        String, KeyPath<Statistics, UInt64>,
        KeyPath<cbr_statistics, UInt64>
      )] = [
        ("live_tokens", \.liveTokens, \.live_tokens),
        ("live_owners", \.liveOwners, \.live_owners),
        ("live_leases", \.liveLeases, \.live_leases),
        ("unsettled", \.unsettled, \.unsettled),
        ("registered", \.registered, \.registered),
        ("ended", \.ended, \.ended),
        ("refused", \.refused, \.refused),
        ("abandoned", \.abandoned, \.abandoned),
        ("slots", \.slots, \.slots),
        ("retired_slots", \.retiredSlots, \.retired_slots),
        ("memory_bytes", \.memoryBytes, \.memory_bytes),
        ("threads", \.threads, \.threads),
        ("heavy_fences", \.heavyFences, \.heavy_fences),
        ("fork_handlers", \.forkHandlers, \.fork_handlers),
        ("events_emitted", \.eventsEmitted, \.events_emitted),
        ("events_written", \.eventsWritten, \.events_written),
        ("events_aggregated", \.eventsAggregated, \.events_aggregated),
        ("events_lost", \.eventsLost, \.events_lost),
        ("live_slots", \.liveSlots, \.live_slots),
        ("live_signals", \.liveSignals, \.live_signals),
        ("live_sessions", \.liveSessions, \.live_sessions),
        ("live_tasks", \.liveTasks, \.live_tasks),
        ("live_replies", \.liveReplies, \.live_replies),
        ("live_thunks", \.liveThunks, \.live_thunks),
        ("live_queues", \.liveQueues, \.live_queues),
      ]
    compare(
      Statistics.self, cbr_statistics.self,
      numbers.map { name, engine, header in
        Field(name, Engine.offset(of: engine), Header.offset(of: header))
      } + [
        Field("size", Engine.offset(of: \.size), Header.offset(of: \.size)),
        Field(
          "history_state", Engine.offset(of: \.historyState),
          Header.offset(of: \.history_state)),
        Field(
          "asymmetric", Engine.offset(of: \.asymmetric),
          Header.offset(of: \.asymmetric)),
        Field(
          "crash_protection", Engine.offset(of: \.crashProtection),
          Header.offset(of: \.crash_protection)),
        Field(
          "reserved", Engine.offset(of: \.reserved),
          Header.offset(of: \.reserved)),
      ])
    // Every field has been compared: together they fill the structure.
    #expect(
      MemoryLayout<Statistics>.size
        == MemoryLayout<Int>.size + numbers.count * 8 + 4 * 4)
  }
}

extension LayoutTests {
  @Test func statusesHaveTheSameValues() {
    let pairs: [(Status, cbr_status)] = [
      (.ok, CBR_OK), (.pending, CBR_PENDING), (.deferred, CBR_DEFERRED),
      (.already, CBR_ALREADY), (.stopped, CBR_STOPPED), (.empty, CBR_EMPTY),
      (.invalid, CBR_E_INVALID), (.stale, CBR_E_STALE), (.kind, CBR_E_KIND),
      (.interface, CBR_E_INTERFACE), (.unimplemented, CBR_E_UNIMPLEMENTED),
      (.foreign, CBR_E_FOREIGN), (.dying, CBR_E_DYING),
      (.closed, CBR_E_CLOSED), (.full, CBR_E_FULL),
      (.consumed, CBR_E_CONSUMED), (.wouldDeadlock, CBR_E_WOULD_DEADLOCK),
      (.timeout, CBR_E_TIMEOUT), (.depth, CBR_E_DEPTH),
      (.thread, CBR_E_THREAD), (.forked, CBR_E_FORKED),
      (.noMemory, CBR_E_NOMEM), (.limit, CBR_E_LIMIT), (.audit, CBR_E_AUDIT),
      (.unsupported, CBR_E_UNSUPPORTED), (.user, CBR_E_USER),
    ]
    for (engine, header) in pairs {
      #expect(engine.rawValue == header.rawValue)
      #expect(String(cString: cbr_status_name(header.rawValue)) != "unknown")
    }
    // The engine has no others.
    let values = Set(pairs.map { $0.1.rawValue })
    #expect(values.count == pairs.count)
    for value: Int32 in -2_000...2_000 {
      #expect((Status(rawValue: value) != nil) == values.contains(value))
    }
  }

  @Test func levelsReasonsAndKindsHaveTheSameValues() {
    #expect(Level.off.rawValue == UInt32(CBR_LEVEL_OFF))
    #expect(Level.lifecycle.rawValue == UInt32(CBR_LEVEL_LIFECYCLE))
    #expect(Level.calls.rawValue == UInt32(CBR_LEVEL_CALLS))
    #expect(Level(rawValue: UInt32(CBR_LEVEL_DEFAULT)) == nil)
    let kinds: [(HandleKind, cbr_kind)] = [
      (.registry, CBR_KIND_REGISTRY), (.token, CBR_KIND_TOKEN),
      (.owner, CBR_KIND_OWNER), (.lease, CBR_KIND_LEASE),
      (.slot, CBR_KIND_SLOT), (.signal, CBR_KIND_SIGNAL),
      (.session, CBR_KIND_SESSION), (.task, CBR_KIND_TASK),
      (.reply, CBR_KIND_REPLY), (.thunk, CBR_KIND_THUNK),
    ]
    for (engine, header) in kinds {
      #expect(UInt32(engine.rawValue) == header.rawValue)
    }
    #expect(HandleKind(rawValue: UInt8(CBR_KIND_NONE.rawValue)) == nil)
    let reasons: [(UInt32, Int)] = [
      (Reason.none, Int(CBR_REASON_NONE)),
      (Reason.ended, Int(CBR_REASON_ENDED)),
      (Reason.ownerDied, Int(CBR_REASON_OWNER_DIED)),
      (Reason.objectDied, Int(CBR_REASON_OBJECT_DIED)),
      (Reason.registryClosed, Int(CBR_REASON_REGISTRY_CLOSED)),
      (Reason.consumed, Int(CBR_REASON_CONSUMED)),
      (Reason.replaced, Int(CBR_REASON_REPLACED)),
      (Reason.cancelled, Int(CBR_REASON_CANCELLED)),
      (Reason.timedOut, Int(CBR_REASON_TIMED_OUT)),
      (Reason.unloaded, Int(CBR_REASON_UNLOADED)),
      (Reason.delegateDied, Int(CBR_REASON_DELEGATE_DIED)),
      (Reason.queueEnded, Int(CBR_REASON_QUEUE_ENDED)),
      (Reason.user, Int(CBR_REASON_USER)),
    ]
    for (engine, header) in reasons {
      #expect(Int(engine) == header)
      #expect((Reason.name(engine) == nil) == (engine == Reason.user))
    }
  }

  @Test func dispositionsAndErrorsOfTasksHaveTheSameValues() {
    #expect(Int(Disposition.goOn) == Int(CBR_CONTINUE))
    #expect(Int(Disposition.stop) == Int(CBR_STOP))
    #expect(Int(Disposition.disconnect) == Int(CBR_DISCONNECT))
    #expect(Int(Disposition.allow) == Int(CBR_ALLOW))
    #expect(Int(Disposition.cancel) == Int(CBR_CANCEL))
    #expect(Int(Disposition.handOver) == Int(CBR_HAND_OVER))
    #expect(Int(TaskError.cancelled) == Int(CBR_TASK_CANCELLED))
    #expect(Int(TaskError.delegateGone) == Int(CBR_TASK_DELEGATE_GONE))
    #expect(Int(TaskError.timedOut) == Int(CBR_TASK_TIMED_OUT))
    // An event is told by the method of its number.
    let methods: [(SessionEventKind, Int)] = [
      (.response, Int(CBR_DID_RECEIVE_RESPONSE)),
      (.data, Int(CBR_DID_RECEIVE_DATA)),
      (.complete, Int(CBR_DID_COMPLETE)),
      (.invalid, Int(CBR_DID_BECOME_INVALID)),
      (.handOver, Int(CBR_DID_HAND_OVER)),
    ]
    for (event, method) in methods {
      #expect(Int(event.rawValue) == method)
    }
    #expect(methods.count == Int(CBR_SESSION_METHODS))
    #expect(cbr_session_interface().pointee.count == Sessions.interface.count)
  }

  @Test func typesOfSignaturesHaveTheSameValues() {
    typealias Engine = MemoryLayout<TypeDescription>
    typealias Header = MemoryLayout<cbr_type>
    compare(
      TypeDescription.self, cbr_type.self,
      [
        Field("kind", Engine.offset(of: \.kind), Header.offset(of: \.kind)),
        Field(
          "count", Engine.offset(of: \.count), Header.offset(of: \.count)),
        Field(
          "fields", Engine.offset(of: \.fields), Header.offset(of: \.fields)),
      ])
    let codes: [(Int, cbr_type_kind)] = [
      (CBR_CODE_VOID, CBR_TYPE_VOID), (CBR_CODE_BOOL, CBR_TYPE_BOOL),
      (CBR_CODE_INT8, CBR_TYPE_INT8), (CBR_CODE_UINT8, CBR_TYPE_UINT8),
      (CBR_CODE_INT16, CBR_TYPE_INT16), (CBR_CODE_UINT16, CBR_TYPE_UINT16),
      (CBR_CODE_INT32, CBR_TYPE_INT32), (CBR_CODE_UINT32, CBR_TYPE_UINT32),
      (CBR_CODE_INT64, CBR_TYPE_INT64), (CBR_CODE_UINT64, CBR_TYPE_UINT64),
      (CBR_CODE_FLOAT, CBR_TYPE_FLOAT), (CBR_CODE_DOUBLE, CBR_TYPE_DOUBLE),
      (CBR_CODE_POINTER, CBR_TYPE_POINTER),
      (CBR_CODE_STRUCT, CBR_TYPE_STRUCT),
      (Int(RefusedType.longDouble), CBR_TYPE_LONG_DOUBLE),
      (Int(RefusedType.complex), CBR_TYPE_COMPLEX),
      (Int(RefusedType.variadic), CBR_TYPE_VARIADIC),
    ]
    for (code, kind) in codes { #expect(code == Int(kind.rawValue)) }
    #expect(Int(ContextPlace.first) == Int(CBR_CONTEXT_FIRST))
    #expect(Int(ContextPlace.last) == Int(CBR_CONTEXT_LAST))
    #expect(Int(ContextPlace.none) == Int(CBR_CONTEXT_NONE))
  }

  @Test func flagsHaveTheSameValues() {
    #expect(RegistrationFlags.oneShot == UInt32(CBR_ONE_SHOT))
    #expect(RegistrationFlags.threadBound == UInt32(CBR_THREAD_BOUND))
    #expect(
      RegistrationFlags.all
        == RegistrationFlags.oneShot | RegistrationFlags.threadBound)
    #expect(RegistryOptions.strictLeaks == UInt32(CBR_STRICT_LEAKS))
    #expect(Handle.none == 0)
  }
}

/// The bits of a handle, at their extremes (C5).
@Suite struct HandleLayoutTests {
  private let kinds: [HandleKind] = [
    .registry, .token, .owner, .lease, .slot, .signal, .session, .task,
    .reply, .thunk,
  ]
  private let generations: [UInt32] = [0, 1, 0x8000_0000, .max - 1, .max]
  /// The last slot is never given out.
  private let indices: [UInt32] = [
    0, 1, 255, 256, Slot.noIndex / 2, Slot.noIndex - 1,
  ]

  private func forEach(
    _ body: (UInt64, UInt32, UInt32, HandleKind) -> Void
  ) {
    for kind in kinds {
      for generation in generations {
        for index in indices {
          body(
            Handle.make(generation: generation, index: index, kind: kind),
            generation, index, kind)
        }
      }
    }
  }

  @Test func noHandleIsZeroOrAllOnes() {
    var seen = Set<UInt64>()
    forEach { handle, generation, index, kind in
      #expect(handle != 0 && handle != .max)
      #expect(Handle.isWellFormed(handle))
      #expect(Handle.generation(of: handle) == generation)
      #expect(Handle.index(of: handle) == index)
      #expect(Handle.kind(of: handle) == kind)
      #expect(seen.insert(handle).inserted)
    }
    #expect(!Handle.isWellFormed(0) && !Handle.isWellFormed(.max))
  }

  /// `slot_of` of the C tests' fixture.
  @Test func theSlotIsWhereTheTestsLookForIt() {
    forEach { handle, _, index, _ in
      #expect(UInt32(truncatingIfNeeded: handle >> 6) & 0x3FF_FFFF == index)
    }
  }

  /// A word of another state, and that of a free slot, is no handle: so it
  /// cannot be entered by whoever guesses it.
  @Test func theWordsOfDeadSlotsAreNoHandles() {
    forEach { handle, _, _, _ in
      let dead = [
        Handle.dying(handle), Handle.draining(handle),
        Handle.destroying(handle),
      ]
      for word in dead {
        #expect(word != handle && !Handle.isWellFormed(word))
        #expect(Handle.handle(ofWord: word) == handle)
      }
      #expect(Set(dead).count == 3)
    }
  }
}
