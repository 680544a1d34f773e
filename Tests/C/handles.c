/* SPDX-License-Identifier: Apache-2.0
 *
 * Any 64-bit value may be passed as any handle (G1), none is given out twice
 * (G2, G3), slots are reused first in, first out (G4), and handles hold nothing
 * (G5). The table below has a row for each parameter that takes a handle and a
 * column for each kind of handle that can be wrong there (C10).
 */
#include "history.h"

#include <spawn.h>
#include <sys/mman.h>

extern char **environ;

/* -------------------------------------------------- the world of a cell -- */

enum {
  TOKEN, OWNER, LEASE, SLOT, SIGNAL, QUEUE, SESSION, TASK, REPLY, THUNK,
  REGISTRY, KINDS
};

/* What the handles of a registry are made of. */
struct parts {
  cbr_registry registry;
  cbr_token token, delegate;
  cbr_session session;
};

/* A handle of each kind that is dead, and what lives in its slot now. */
struct dead {
  cbr_handle stale;  /* ended; its slot is free */
  cbr_handle reused; /* ended; its slot is another handle's */
  cbr_handle holder; /* that other one, live */
};

static struct world {
  cbr_registry home, twin; /* with the same contents (C11) */
  cbr_handle live[KINDS];    /* of home */
  cbr_handle foreign[KINDS]; /* of twin */
  cbr_handle closed[KINDS];  /* of a registry that was closed */
  struct dead dead[KINDS];
  struct parts of_home, of_twin, of_closed;
  cbr_reply reply;           /* the last one that a delegate was given */
  cbr_handle known[64];      /* all that is live, also what has no name here */
  int known_count;
  struct counted context;
} world;

static const cbr_method methods[] = {
    {"first", CBR_METHOD_REQUIRED, 0},
    {"second", CBR_METHOD_DEFAULT, 7},
};
static const cbr_interface interface = {sizeof(cbr_interface), "handles", 1,
                                        2, methods};

/* A delegate that only notes which reply it has to give. */
static void did_receive_response(void *context, cbr_task task,
                                 const void *response, size_t size,
                                 cbr_reply reply) {
  (void)context, (void)task, (void)response, (void)size;
  world.reply = reply;
}

static void did_complete(void *context, cbr_task task, int error) {
  (void)context, (void)task, (void)error;
}

static cbr_token add_delegate(cbr_registry registry) {
  const cbr_function table[CBR_SESSION_METHODS] = {
      [CBR_DID_RECEIVE_RESPONSE] = (cbr_function)did_receive_response,
      [CBR_DID_COMPLETE] = (cbr_function)did_complete};
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token = CBR_NONE;
  what.label = "delegate";
  what.interface = cbr_session_interface();
  what.methods = table;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  return token;
}

static cbr_session add_session(const struct parts *parts) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session = CBR_NONE;
  options.delegate = parts->delegate;
  EXPECT(CBR_OK, cbr_session_create(parts->registry, &options, &session));
  return session;
}

static cbr_task add_task(const struct parts *parts) {
  cbr_task task = CBR_NONE;
  EXPECT(CBR_OK, cbr_task_begin(parts->session, NULL, &task));
  return task;
}

/* Makes a handle of a kind in a registry, of the twin's shape. */
static cbr_handle make(int kind, const struct parts *parts) {
  cbr_registry registry = parts->registry;
  cbr_handle handle = CBR_NONE;
  switch (kind) {
    case TOKEN: return add(registry, "token", &world.context, true, CBR_NONE);
    case OWNER: return add_owner(registry, "owner");
    case LEASE: EXPECT(CBR_OK, cbr_lease(parts->token, &handle)); break;
    case SLOT:
      EXPECT(CBR_OK, cbr_slot_create(registry, "slot", CBR_NONE, &handle));
      EXPECT(CBR_OK, cbr_slot_set(handle, parts->token));
      break;
    case SIGNAL:
      EXPECT(CBR_OK, cbr_signal_create(registry, "signal", CBR_NONE, &handle));
      break;
    case QUEUE:
      EXPECT(CBR_OK, cbr_queue_create(registry, NULL, &handle));
      break;
    case SESSION: return add_session(parts);
    case TASK: return add_task(parts);
    case REPLY:
      EXPECT(CBR_OK, cbr_task_respond(add_task(parts), NULL, 0));
      return world.reply;
    case THUNK: {
      cbr_signature signature = CBR_SIGNATURE_INIT;
      EXPECT(CBR_OK,
             cbr_thunk_create(registry, parts->token, &signature, &handle));
      break;
    }
    default: return open_registry("registry", CBR_LEVEL_CALLS);
  }
  return handle;
}

static struct parts make_parts(cbr_registry registry) {
  struct parts parts = {registry, CBR_NONE, CBR_NONE, CBR_NONE};
  parts.delegate = add_delegate(registry);
  parts.session = add_session(&parts);
  return parts;
}

static void end(cbr_handle handle) {
  cbr_status status = cbr_invalidate_wait(handle, CBR_REASON_ENDED,
                                          CBR_FOREVER);
  CHECK(status == CBR_OK);
}

static uint64_t next_random(void) {
  static uint64_t state = 0x853c49e6748fea9bu;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du;
}

/* Some handles take several slots, which take turns: others come between, so
 * that each slot has its turn as each of them. */
static void shift_turns(void) {
  for (uint64_t i = next_random() % 4; i > 0; i--)
    end(add_owner(world.home, "between"));
}

static struct dead make_dead(int kind) {
  struct dead dead;
  dead.reused = make(kind, &world.of_home);
  end(dead.reused);
  for (;;) {
    dead.holder = make(kind, &world.of_home);
    if (slot_of(dead.holder) == slot_of(dead.reused)) break;
    end(dead.holder);
    shift_turns();
  }
  dead.stale = make(kind, &world.of_home);
  end(dead.stale);
  return dead;
}

static cbr_disposition note_known(void *context, const cbr_item *item) {
  (void)context;
  CHECK(world.known_count < 64);
  if (world.known_count < 64) world.known[world.known_count++] = item->handle;
  return CBR_CONTINUE;
}

static void make_kinds(cbr_handle handles[], struct parts *parts,
                       cbr_registry registry) {
  handles[REGISTRY] = registry;
  *parts = make_parts(registry);
  for (int kind = TOKEN; kind < REGISTRY; kind++) {
    handles[kind] = make(kind, parts);
    if (kind == TOKEN) parts->token = handles[TOKEN];
  }
}

static void make_world(void) {
  memset(&world, 0, sizeof world);
  world.home = open_registry("home", CBR_LEVEL_CALLS);
  world.twin = open_registry("twin", CBR_LEVEL_CALLS);
  cbr_registry closed = open_registry("closed", CBR_LEVEL_CALLS);
  make_kinds(world.live, &world.of_home, world.home);
  make_kinds(world.foreign, &world.of_twin, world.twin);
  make_kinds(world.closed, &world.of_closed, closed);
  end(world.closed[LEASE]);
  close_registry(closed);
  for (int kind = TOKEN; kind < KINDS; kind++)
    world.dead[kind] = make_dead(kind);
  world.context.destroyed = 0;
  EXPECT(CBR_OK, cbr_registry_each_live(world.home, note_known, NULL));
  EXPECT(CBR_OK, cbr_registry_each_live(world.twin, note_known, NULL));
}

static void end_world(void) {
  int destroyed_before = destroyed(&world.context);
  end(world.live[LEASE]);
  end(world.foreign[LEASE]);
  end(world.dead[LEASE].holder);
  close_registry(world.dead[REGISTRY].holder);
  close_registry(world.home);
  close_registry(world.twin);
  /* A live token, the other registry's, and the holder of a reused slot. */
  EQUAL(0, destroyed_before);
  EQUAL(3, destroyed(&world.context));
}

/* ------------------------------------------------------------- attempts -- */

/* Each passes a handle to a function, with good values for everything else,
 * and looks at the out-parameters. */

static bool is_empty(const cbr_call *call) {
  return call->function == NULL && call->context == NULL &&
         call->token == CBR_NONE && call->disposition == 0;
}

static cbr_status entered(cbr_status status, cbr_call *call) {
  if (status == CBR_OK) {
    EXPECT(CBR_OK, cbr_leave(call));
  } else {
    CHECK(is_empty(call));
  }
  return status;
}

#define DIRTY(variable) memset(&(variable), 0xAA, sizeof(variable))

static cbr_status try_enter(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  return entered(cbr_enter(handle, &call), &call);
}

static cbr_status try_enter_typed(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  return entered(cbr_enter_typed(handle, 0, &call), &call);
}

static cbr_status try_enter_method(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  return entered(cbr_enter_method(handle, &interface, 0, &call), &call);
}

/* The macro: a refused call does nothing, so its status is the last one. */
static cbr_status try_call(cbr_handle handle) {
  cbr_call call;
  cbr_status status = cbr_enter(handle, &call);
  if (status == CBR_OK) EXPECT(CBR_OK, cbr_leave(&call));
  CHECK(!calls(handle));
  return status;
}

static cbr_status try_leave(cbr_handle handle) {
  /* Inside another call, so that the thread has a pin to confuse it with. */
  cbr_call around, forged = CBR_CALL_INIT;
  bool is_inside = cbr_enter(world.live[TOKEN], &around) == CBR_OK;
  forged.token = handle;
  cbr_status status = cbr_leave(&forged);
  if (is_inside) EXPECT(CBR_OK, cbr_leave(&around));
  return status;
}

static cbr_status try_responds(cbr_handle handle) {
  return cbr_responds(handle, &interface, 0);
}

static cbr_status try_lease(cbr_handle handle) {
  cbr_lease_handle lease = 1;
  cbr_status status = cbr_lease(handle, &lease);
  if (status != CBR_OK) EQUAL(CBR_NONE, lease);
  return status;
}

static cbr_status try_lease_get(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  cbr_status status = cbr_lease_get(handle, &call);
  if (status != CBR_OK) CHECK(is_empty(&call));
  return status;
}

static cbr_status try_lease_end(cbr_handle handle) {
  return cbr_lease_end(handle);
}

static cbr_status try_is_live(cbr_handle handle) {
  return cbr_is_live(handle) ? CBR_OK : CBR_E_STALE;
}

static cbr_status try_invalidate(cbr_handle handle) {
  return cbr_invalidate(handle, CBR_REASON_ENDED);
}

static cbr_status try_invalidate_wait(cbr_handle handle) {
  return cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER);
}

static cbr_status try_explain(cbr_handle handle) {
  char text[4096] = "dirty";
  size_t needed = 1234567;
  cbr_status status = cbr_explain(handle, text, sizeof text, &needed);
  EQUAL(status == CBR_OK ? strlen(text) + 1 : 0, needed);
  if (status != CBR_OK) CHECK(text[0] == 0);
  return status;
}

static cbr_disposition must_not_visit(void *context, const cbr_item *item) {
  (void)context;
  CHECK(!"visited");
  CHECK(item->handle == CBR_NONE);
  return CBR_CONTINUE;
}

static cbr_status try_impact(cbr_handle handle) {
  return cbr_impact(handle, must_not_visit, NULL);
}

static cbr_status try_each_live(cbr_handle handle) {
  return cbr_registry_each_live(handle, must_not_visit, NULL);
}

static cbr_status try_statistics(cbr_handle handle) {
  cbr_statistics statistics, empty = CBR_STATISTICS_INIT;
  DIRTY(statistics);
  statistics.size = sizeof statistics;
  cbr_status status = cbr_registry_statistics(handle, &statistics);
  if (status != CBR_OK)
    CHECK(memcmp(&statistics, &empty, sizeof empty) == 0);
  return status;
}

static cbr_status try_close(cbr_handle handle) {
  return cbr_registry_close(handle, CBR_FOREVER);
}

static cbr_status try_register(cbr_handle handle) {
  cbr_token token = 1;
  cbr_status status = CBR_REGISTER(handle, "new", count_call, &world.context,
                                   count_destroy, CBR_NONE, &token);
  if (status != CBR_OK) EQUAL(CBR_NONE, token);
  return status;
}

static cbr_status try_register_owner(cbr_handle handle) {
  cbr_token token = 1;
  cbr_status status =
      CBR_REGISTER(world.home, "new", count_call, &world.context,
                   count_destroy, handle, &token);
  if (status != CBR_OK) EQUAL(CBR_NONE, token);
  return status;
}

static cbr_status try_owner_create(cbr_handle handle) {
  cbr_owner owner = 1;
  cbr_status status = cbr_owner_create(handle, "new", &owner);
  if (status != CBR_OK) EQUAL(CBR_NONE, owner);
  return status;
}

static cbr_status try_owner_create_child(cbr_handle handle) {
  cbr_owner owner = 1;
  cbr_status status = cbr_owner_create_child(handle, "new", &owner);
  if (status != CBR_OK) EQUAL(CBR_NONE, owner);
  return status;
}

static cbr_status try_owner_for_object(cbr_handle handle) {
  cbr_owner owner = 1;
  cbr_status status = cbr_owner_for_object(handle, &world, "new", &owner);
  if (status != CBR_OK) EQUAL(CBR_NONE, owner);
  return status;
}

static cbr_status try_object_died(cbr_handle handle) {
  return cbr_object_died(handle, &world);
}

static cbr_status try_level(cbr_handle handle) {
  return cbr_audit_level(handle, CBR_LEVEL_OFF);
}

static cbr_status try_note(cbr_handle handle) {
  return cbr_audit_note(handle, CBR_NONE, "note");
}

static cbr_status try_note_about(cbr_handle handle) {
  return cbr_audit_note(world.home, handle, "note");
}

static cbr_status try_flush(cbr_handle handle) {
  uint64_t achieved = 1;
  cbr_status status =
      cbr_audit_flush(handle, CBR_FLUSH_RING, CBR_FOREVER, &achieved);
  if (status != CBR_OK) EQUAL(0, achieved);
  return status;
}

static cbr_status made(cbr_status status, const cbr_handle *handle) {
  if (status != CBR_OK) EQUAL(CBR_NONE, *handle);
  return status;
}

static cbr_status try_slot_create(cbr_handle handle) {
  cbr_slot slot = 1;
  return made(cbr_slot_create(handle, "new", CBR_NONE, &slot), &slot);
}

static cbr_status try_slot_owner(cbr_handle handle) {
  cbr_slot slot = 1;
  return made(cbr_slot_create(world.home, "new", handle, &slot), &slot);
}

static cbr_status try_slot_set(cbr_handle handle) {
  return cbr_slot_set(handle, world.live[TOKEN]);
}

static cbr_status try_slot_set_token(cbr_handle handle) {
  return cbr_slot_set(world.live[SLOT], handle);
}

static cbr_status try_slot_get(cbr_handle handle) {
  return cbr_slot_get(handle) == CBR_NONE ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_slot_enter(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  return entered(cbr_slot_enter(handle, NULL, 0, &call), &call);
}

static cbr_status try_slot_enter_method(cbr_handle handle) {
  cbr_call call;
  DIRTY(call);
  return entered(cbr_slot_enter(handle, &interface, 1, &call), &call);
}

static cbr_status try_slot_on_clear(cbr_handle handle) {
  return cbr_slot_on_clear(handle, world.live[TOKEN]);
}

static cbr_status try_slot_observer(cbr_handle handle) {
  return cbr_slot_on_clear(world.live[SLOT], handle);
}

static cbr_status try_signal_create(cbr_handle handle) {
  cbr_signal signal = 1;
  return made(cbr_signal_create(handle, "new", CBR_NONE, &signal), &signal);
}

static cbr_status try_signal_owner(cbr_handle handle) {
  cbr_signal signal = 1;
  return made(cbr_signal_create(world.home, "new", handle, &signal), &signal);
}

static cbr_status connect_to(cbr_handle signal, cbr_handle owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token = 1;
  what.function = (cbr_function)count_call;
  what.context = &world.context;
  what.destroy = count_destroy;
  what.owner = owner;
  return made(cbr_connect(signal, &what, NULL, &token), &token);
}

static cbr_status try_connect(cbr_handle handle) {
  return connect_to(handle, CBR_NONE);
}

static cbr_status try_connect_owner(cbr_handle handle) {
  return connect_to(world.live[SIGNAL], handle);
}

static bool is_nothing(const cbr_emission *emission) {
  return emission->called == 0 && emission->blocked == 0 &&
         emission->stopped_by == CBR_NONE;
}

static cbr_status try_emit(cbr_handle handle) {
  cbr_emission emission;
  DIRTY(emission);
  emission.size = sizeof emission;
  cbr_status status = cbr_emit(handle, NULL, &emission);
  CHECK(is_nothing(&emission));
  return status;
}

static cbr_disposition must_not_combine(void *context, void *argument,
                                        cbr_token handler,
                                        cbr_disposition answer) {
  (void)context, (void)argument, (void)handler;
  CHECK(!"combined");
  return answer;
}

static cbr_status try_emit_combined(cbr_handle handle) {
  cbr_emission emission;
  DIRTY(emission);
  emission.size = sizeof emission;
  cbr_status status =
      cbr_emit_combined(handle, NULL, must_not_combine, NULL, &emission);
  CHECK(is_nothing(&emission));
  return status;
}

static cbr_status try_block(cbr_handle handle) { return cbr_block(handle); }

static cbr_status try_unblock(cbr_handle handle) {
  return cbr_unblock(handle);
}

static cbr_status create_session(cbr_registry registry, cbr_token delegate,
                                 cbr_owner owner) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session = 1;
  options.delegate = delegate;
  options.owner = owner;
  return made(cbr_session_create(registry, &options, &session), &session);
}

static cbr_status try_session_create(cbr_handle handle) {
  return create_session(handle, world.of_home.delegate, CBR_NONE);
}

static cbr_status try_session_owner(cbr_handle handle) {
  return create_session(world.home, world.of_home.delegate, handle);
}

static cbr_status try_session_delegate(cbr_handle handle) {
  return create_session(world.home, handle, CBR_NONE);
}

static cbr_status try_session_finish(cbr_handle handle) {
  return cbr_session_finish(handle);
}

static cbr_status try_session_cancel(cbr_handle handle) {
  return cbr_session_cancel(handle);
}

static cbr_status try_task_begin(cbr_handle handle) {
  cbr_task task = 1;
  return made(cbr_task_begin(handle, NULL, &task), &task);
}

static cbr_status try_task_respond(cbr_handle handle) {
  return cbr_task_respond(handle, "response", 8);
}

static cbr_status try_task_data(cbr_handle handle) {
  return cbr_task_data(handle, "data", 4);
}

static cbr_status try_task_complete(cbr_handle handle) {
  return cbr_task_complete(handle, 0);
}

static cbr_status try_task_cancel(cbr_handle handle) {
  return cbr_task_cancel(handle);
}

/* NULL is also what a task without a context has: none here has one. */
static cbr_status try_task_context(cbr_handle handle) {
  return cbr_task_context(handle) == NULL ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_task_gathered(cbr_handle handle) {
  const void *bytes = &world;
  size_t size = 1;
  cbr_status status = cbr_task_gathered(handle, &bytes, &size);
  CHECK(bytes == NULL && size == 0);
  return status;
}

static cbr_status try_reply_send(cbr_handle handle) {
  return cbr_reply_send(handle, CBR_ALLOW, CBR_NONE);
}

static cbr_status try_reply_successor(cbr_handle handle) {
  return cbr_reply_send(world.live[REPLY], CBR_HAND_OVER, handle);
}

static cbr_status create_queue(cbr_registry registry, cbr_owner owner) {
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  cbr_queue queue = 1;
  options.owner = owner;
  return made(cbr_queue_create(registry, &options, &queue), &queue);
}

static cbr_status try_queue_create(cbr_handle handle) {
  return create_queue(handle, CBR_NONE);
}

static cbr_status try_queue_owner(cbr_handle handle) {
  return create_queue(world.home, handle);
}

static cbr_status post(cbr_queue queue, cbr_token token) {
  cbr_message message = CBR_MESSAGE_INIT;
  return cbr_post(queue, token, &message);
}

static cbr_status try_post(cbr_handle handle) {
  return post(handle, world.live[TOKEN]);
}

static cbr_status try_post_token(cbr_handle handle) {
  return post(world.live[QUEUE], handle);
}

static cbr_status try_queue_descriptor(cbr_handle handle) {
  return cbr_queue_descriptor(handle) < 0 ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_queue_run(cbr_handle handle) {
  size_t ran = 1;
  cbr_status status = cbr_queue_run(handle, 0, &ran);
  EQUAL(0, ran);
  return status;
}

static cbr_status try_queue_finish(cbr_handle handle) {
  return cbr_queue_finish(handle);
}

static cbr_status try_queue_statistics(cbr_handle handle) {
  cbr_queue_counts counts = CBR_QUEUE_COUNTS_INIT;
  return cbr_queue_statistics(handle, &counts);
}

static void must_not_complete(void *context, int error, void *value) {
  (void)context, (void)error, (void)value;
  CHECK(false);
}

static cbr_status create_completion(cbr_registry registry, cbr_owner owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_reply completion = 1;
  what.function = CBR_FUNCTION_CAST_(cbr_function, must_not_complete);
  what.owner = owner;
  return made(cbr_completion_create(registry, &what, 0, &completion),
              &completion);
}

static cbr_status try_completion_create(cbr_handle handle) {
  return create_completion(handle, CBR_NONE);
}

static cbr_status try_completion_owner(cbr_handle handle) {
  return create_completion(world.home, handle);
}

static cbr_status try_completion_send(cbr_handle handle) {
  return cbr_completion_send(handle, 0, NULL);
}

static cbr_status try_completion_set_timeout(cbr_handle handle) {
  return cbr_completion_set_timeout(handle, CBR_NONE, 0);
}

static void ignore_completion(void *context, int error, void *value) {
  (void)context, (void)error, (void)value;
}

static cbr_status try_completion_queue(cbr_handle handle) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_reply completion = CBR_NONE;
  what.function = CBR_FUNCTION_CAST_(cbr_function, ignore_completion);
  cbr_status status =
      cbr_completion_create(world.home, &what, 0, &completion);
  if (status != CBR_OK) return status;
  status = cbr_completion_set_timeout(completion, handle, CBR_FOREVER);
  EXPECT(CBR_OK, cbr_completion_send(completion, 0, NULL));
  return status;
}

static cbr_status create_thunk(cbr_registry registry, cbr_token token) {
  cbr_signature signature = CBR_SIGNATURE_INIT;
  cbr_thunk thunk = 1;
  return made(cbr_thunk_create(registry, token, &signature, &thunk), &thunk);
}

static cbr_status try_thunk_create(cbr_handle handle) {
  return create_thunk(handle, world.live[TOKEN]);
}

static cbr_status try_thunk_token(cbr_handle handle) {
  return create_thunk(world.home, handle);
}

static cbr_status try_thunk_function(cbr_handle handle) {
  return cbr_thunk_function(handle) == NULL ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_cookie(cbr_handle handle) {
  return cbr_from_cookie(cbr_cookie(handle)) == handle ? CBR_OK : CBR_E_STALE;
}

/* ------------------------------------------------------------ the table -- */

enum column {
  ZERO, ONES, STALE, REUSED, FOREIGN, WRONG_KIND, RANDOM, CLOSED, FORKED,
  COLUMNS
};

static const char *const column_names[COLUMNS] = {
    "zero", "all-ones", "stale", "reused slot", "foreign registry",
    "wrong kind", "random", "closed registry", "forked child"};

struct row {
  const char *name;
  cbr_status (*attempt)(cbr_handle handle);
  int kind;
  bool is_call; /* a refusal of a former token is counted */
  const char *cells; /* one letter a column; see is_status */
};

#define CALL true
#define OTHER false

/* A letter may stand for "-": the handle is good there. A foreign handle is
 * wrong only next to one of the home registry; random words are R: of no form,
 * of another kind, or never given out. Notes:
 * (1) CBR_NONE is the registry itself.
 * (2) Handles of every kind may be passed.
 * (3) The dead may be named.
 * (4) The answer is true or false; S stands for false.
 * (5) A registry that is dead is closed.
 * (6) CBR_NONE is no token: it empties the slot, and nobody is told.
 * (7) The answer is none; S stands for that.
 * (8) The foreign one is a delegate.
 * (9) A session that is over takes no task, as one that has begun to end. */
static const struct row table[] = {
    /*                    zero, all-ones, stale, reused slot, foreign registry,
                wrong kind, random, closed registry, forked child:  0~SRFWRCF */
    {"enter", try_enter, TOKEN, CALL,                              "IISS-KRCF"},
    {"enter_typed", try_enter_typed, TOKEN, CALL,                  "IISS-KRCF"},
    {"enter_method", try_enter_method, TOKEN, CALL,                "IISS-KRCF"},
    {"CBR_CALL", try_call, TOKEN, CALL,                            "IISS-KRCF"},
    {"leave", try_leave, TOKEN, OTHER,                             "IIIIIIIIF"},
    {"responds", try_responds, TOKEN, OTHER,                       "IISS-KRCF"},
    {"lease", try_lease, TOKEN, CALL,                              "IISS-KRCF"},
    {"lease_get", try_lease_get, LEASE, OTHER,                     "IISS-KRCF"},
    {"lease_end", try_lease_end, LEASE, OTHER,                     "IIAA-KRCF"},
    /* (2) (4) */
    {"is_live a token", try_is_live, TOKEN, OTHER,                 "SSSS--SSS"},
    {"is_live an owner", try_is_live, OWNER, OTHER,                "SSSS--SSS"},
    {"is_live a lease", try_is_live, LEASE, OTHER,                 "SSSS--SSS"},
    {"is_live a slot", try_is_live, SLOT, OTHER,                   "SSSS--SSS"},
    {"is_live a signal", try_is_live, SIGNAL, OTHER,               "SSSS--SSS"},
    {"is_live a queue", try_is_live, QUEUE, OTHER,                 "SSSS--SSS"},
    {"is_live a session", try_is_live, SESSION, OTHER,             "SSSS--SSS"},
    {"is_live a task", try_is_live, TASK, OTHER,                   "SSSS--SSS"},
    {"is_live a reply", try_is_live, REPLY, OTHER,                 "SSSS--SSS"},
    {"is_live a thunk", try_is_live, THUNK, OTHER,                 "SSSS--SSS"},
    {"is_live a registry", try_is_live, REGISTRY, OTHER,           "SSSS--SSS"},
    /* (2) (5) */
    {"invalidate a token", try_invalidate, TOKEN, OTHER,           "IIAA--RCF"},
    {"invalidate an owner", try_invalidate, OWNER, OTHER,          "IIAA--RCF"},
    {"invalidate a lease", try_invalidate, LEASE, OTHER,           "IIAA--RCF"},
    {"invalidate a slot", try_invalidate, SLOT, OTHER,             "IIAA--RCF"},
    {"invalidate a signal", try_invalidate, SIGNAL, OTHER,         "IIAA--RCF"},
    {"invalidate a queue", try_invalidate, QUEUE, OTHER,           "IIAA--RCF"},
    {"invalidate a session", try_invalidate, SESSION, OTHER,       "IIAA--RCF"},
    {"invalidate a task", try_invalidate, TASK, OTHER,             "IIAA--RCF"},
    {"invalidate a reply", try_invalidate, REPLY, OTHER,           "IIAA--RCF"},
    {"invalidate a thunk", try_invalidate, THUNK, OTHER,           "IIAA--RCF"},
    {"invalidate a registry", try_invalidate, REGISTRY, OTHER,     "IIAA--RAF"},
    {"wait for a token", try_invalidate_wait, TOKEN, OTHER,        "IIAA--RCF"},
    {"wait for an owner", try_invalidate_wait, OWNER, OTHER,       "IIAA--RCF"},
    {"wait for a lease", try_invalidate_wait, LEASE, OTHER,        "IIAA--RCF"},
    {"wait for a slot", try_invalidate_wait, SLOT, OTHER,          "IIAA--RCF"},
    {"wait for a signal", try_invalidate_wait, SIGNAL, OTHER,      "IIAA--RCF"},
    {"wait for a queue", try_invalidate_wait, QUEUE, OTHER,        "IIAA--RCF"},
    {"wait for a session", try_invalidate_wait, SESSION, OTHER,    "IIAA--RCF"},
    {"wait for a task", try_invalidate_wait, TASK, OTHER,          "IIAA--RCF"},
    {"wait for a reply", try_invalidate_wait, REPLY, OTHER,        "IIAA--RCF"},
    {"wait for a thunk", try_invalidate_wait, THUNK, OTHER,        "IIAA--RCF"},
    {"wait for a registry", try_invalidate_wait, REGISTRY, OTHER,  "IIAA--RAF"},
    {"impact of a token", try_impact, TOKEN, OTHER,                "IISS--RCF"},
    {"impact of an owner", try_impact, OWNER, OTHER,               "IISS--RCF"},
    {"impact of a lease", try_impact, LEASE, OTHER,                "IISS--RCF"},
    {"impact of a slot", try_impact, SLOT, OTHER,                  "IISS--RCF"},
    {"impact of a signal", try_impact, SIGNAL, OTHER,              "IISS--RCF"},
    {"impact of a queue", try_impact, QUEUE, OTHER,                "IISS--RCF"},
    {"impact of a session", try_impact, SESSION, OTHER,            "IISS--RCF"},
    {"impact of a task", try_impact, TASK, OTHER,                  "IISS--RCF"},
    {"impact of a reply", try_impact, REPLY, OTHER,                "IISS--RCF"},
    {"impact of a thunk", try_impact, THUNK, OTHER,                "IISS--RCF"},
    {"impact of a registry", try_impact, REGISTRY, OTHER,          "IICC--RCF"},
    /* (2) (3) (5) */
    {"explain a token", try_explain, TOKEN, OTHER,                 "IIOO--RCF"},
    {"explain an owner", try_explain, OWNER, OTHER,                "IIOO--RCF"},
    {"explain a lease", try_explain, LEASE, OTHER,                 "IIOO--RCF"},
    {"explain a slot", try_explain, SLOT, OTHER,                   "IIOO--RCF"},
    {"explain a signal", try_explain, SIGNAL, OTHER,               "IIOO--RCF"},
    {"explain a queue", try_explain, QUEUE, OTHER,                 "IIOO--RCF"},
    {"explain a session", try_explain, SESSION, OTHER,             "IIOO--RCF"},
    {"explain a task", try_explain, TASK, OTHER,                   "IIOO--RCF"},
    {"explain a reply", try_explain, REPLY, OTHER,                 "IIOO--RCF"},
    {"explain a thunk", try_explain, THUNK, OTHER,                 "IIOO--RCF"},
    {"explain a registry", try_explain, REGISTRY, OTHER,           "IICC--RCF"},
    /* (5) */
    {"close", try_close, REGISTRY, OTHER,                          "IIAA-KRAF"},
    {"statistics", try_statistics, REGISTRY, OTHER,                "IICC-KRCF"},
    {"each_live", try_each_live, REGISTRY, OTHER,                  "IICC-KRCF"},
    {"register", try_register, REGISTRY, OTHER,                    "IICC-KRCF"},
    {"register's owner", try_register_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"owner_create", try_owner_create, REGISTRY, OTHER,            "IICC-KRCF"},
    {"owner_create_child", try_owner_create_child, OWNER, OTHER,   "IISS-KRCF"},
    {"owner_for_object", try_owner_for_object, REGISTRY, OTHER,    "IICC-KRCF"},
    {"object_died", try_object_died, REGISTRY, OTHER,              "IICC-KRCF"},
    {"audit_level of a token", try_level, TOKEN, OTHER,            "IISS--RCF"},
    {"audit_level of a registry", try_level, REGISTRY, OTHER,      "IICC--RCF"},
    {"audit_level of an owner", try_level, OWNER, OTHER,           "IIKK--RKK"},
    {"audit_level of a lease", try_level, LEASE, OTHER,            "IIKK--RKK"},
    {"audit_level of a slot", try_level, SLOT, OTHER,              "IIKK--RKK"},
    {"audit_level of a signal", try_level, SIGNAL, OTHER,          "IIKK--RKK"},
    {"audit_level of a queue", try_level, QUEUE, OTHER,            "IIKK--RKK"},
    {"audit_level of a session", try_level, SESSION, OTHER,        "IIKK--RKK"},
    {"audit_level of a task", try_level, TASK, OTHER,              "IIKK--RKK"},
    {"audit_level of a reply", try_level, REPLY, OTHER,            "IIKK--RKK"},
    {"audit_level of a thunk", try_level, THUNK, OTHER,            "IIKK--RKK"},
    {"audit_note", try_note, REGISTRY, OTHER,                      "IICC-KRCF"},
    {"audit_note's token", try_note_about, TOKEN, OTHER, /* (1) (3) */
                                                                   "OIOOXKRCF"},
    {"audit_flush", try_flush, REGISTRY, OTHER,                    "IICC-KRCF"},
    {"slot_create", try_slot_create, REGISTRY, OTHER,              "IICC-KRCF"},
    {"slot_create's owner", try_slot_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"slot_set", try_slot_set, SLOT, OTHER,                        "IISSXKRCF"},
    {"slot_set's token", try_slot_set_token, TOKEN, OTHER, /* (6) */
                                                                   "OISSXKRCF"},
    {"slot_get", try_slot_get, SLOT, OTHER, /* (7) */              "SSSS-SSSS"},
    {"slot_enter", try_slot_enter, SLOT, OTHER,                    "IISS-KRCF"},
    {"slot_enter a method", try_slot_enter_method, SLOT, OTHER,    "IISS-KRCF"},
    {"slot_on_clear", try_slot_on_clear, SLOT, OTHER,              "IISSXKRCF"},
    {"slot_on_clear's observer", try_slot_observer, TOKEN, OTHER, /* (6) */
                                                                   "OISSXKRCF"},
    {"signal_create", try_signal_create, REGISTRY, OTHER,          "IICC-KRCF"},
    {"signal_create's owner", try_signal_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"connect", try_connect, SIGNAL, OTHER,                        "IISS-KRCF"},
    {"connect's owner", try_connect_owner, OWNER, OTHER, /* (1) */ "-ISSXKRCF"},
    {"emit", try_emit, SIGNAL, CALL,                               "IISS-KRCF"},
    {"emit_combined", try_emit_combined, SIGNAL, CALL,             "IISS-KRCF"},
    {"block a signal", try_block, SIGNAL, OTHER,                   "IISS--RCF"},
    {"block a token", try_block, TOKEN, OTHER,                     "IISSK-RCF"},
    {"block an owner", try_block, OWNER, OTHER,                    "IIKKK-RKK"},
    {"block a lease", try_block, LEASE, OTHER,                     "IIKKK-RKK"},
    {"block a slot", try_block, SLOT, OTHER,                       "IIKKK-RKK"},
    {"block a queue", try_block, QUEUE, OTHER,                     "IIKKK-RKK"},
    {"block a session", try_block, SESSION, OTHER,                 "IIKKK-RKK"},
    {"block a task", try_block, TASK, OTHER,                       "IIKKK-RKK"},
    {"block a reply", try_block, REPLY, OTHER,                     "IIKKK-RKK"},
    {"block a thunk", try_block, THUNK, OTHER,                     "IIKKK-RKK"},
    {"block a registry", try_block, REGISTRY, OTHER,               "IIKKK-RKK"},
    {"unblock a signal", try_unblock, SIGNAL, OTHER,               "IISS--RCF"},
    {"unblock a token", try_unblock, TOKEN, OTHER,                 "IISSK-RCF"},
    {"unblock an owner", try_unblock, OWNER, OTHER,                "IIKKK-RKK"},
    {"unblock a lease", try_unblock, LEASE, OTHER,                 "IIKKK-RKK"},
    {"unblock a slot", try_unblock, SLOT, OTHER,                   "IIKKK-RKK"},
    {"unblock a queue", try_unblock, QUEUE, OTHER,                 "IIKKK-RKK"},
    {"unblock a session", try_unblock, SESSION, OTHER,             "IIKKK-RKK"},
    {"unblock a task", try_unblock, TASK, OTHER,                   "IIKKK-RKK"},
    {"unblock a reply", try_unblock, REPLY, OTHER,                 "IIKKK-RKK"},
    {"unblock a thunk", try_unblock, THUNK, OTHER,                 "IIKKK-RKK"},
    {"unblock a registry", try_unblock, REGISTRY, OTHER,           "IIKKK-RKK"},
    {"session_create", try_session_create, REGISTRY, OTHER,        "IICC-KRCF"},
    {"session_create's owner", try_session_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"session_create's delegate", try_session_delegate, TOKEN, OTHER, /* (8) */
                                                                   "IISSXKRCF"},
    {"session_finish", try_session_finish, SESSION, OTHER,         "IIAA-KRCF"},
    {"session_cancel", try_session_cancel, SESSION, OTHER,         "IIAA-KRCF"},
    {"task_begin", try_task_begin, SESSION, OTHER, /* (9) */       "IICC-KRCF"},
    {"task_respond", try_task_respond, TASK, OTHER,                "IISS-KRCF"},
    {"task_data", try_task_data, TASK, OTHER,                      "IISS-KRCF"},
    {"task_complete", try_task_complete, TASK, OTHER,              "IIAA-KRCF"},
    {"task_cancel", try_task_cancel, TASK, OTHER,                  "IIAA-KRCF"},
    {"task_context", try_task_context, TASK, OTHER, /* (7) */      "SSSS-SSSS"},
    {"task_gathered", try_task_gathered, TASK, OTHER,              "IISS-KRCF"},
    {"reply_send", try_reply_send, REPLY, OTHER,                   "IISS-KRCF"},
    {"reply_send's successor", try_reply_successor, TOKEN, OTHER, /* (8) */
                                                                   "IISSXKRCF"},
    {"queue_create", try_queue_create, REGISTRY, OTHER,            "IICC-KRCF"},
    {"queue_create's owner", try_queue_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"post", try_post, QUEUE, OTHER,                               "IISSXKRCF"},
    {"post's token", try_post_token, TOKEN, CALL,                  "IISSXKRCF"},
    {"queue_descriptor", try_queue_descriptor, QUEUE, OTHER, /* (4) */
                                                                   "SSSS-SSSS"},
    {"queue_run", try_queue_run, QUEUE, OTHER,                     "IISS-KRCF"},
    {"queue_finish", try_queue_finish, QUEUE, OTHER,               "IISS-KRCF"},
    {"queue_statistics", try_queue_statistics, QUEUE, OTHER,       "IISS-KRCF"},
    {"completion_create", try_completion_create, REGISTRY, OTHER,  "IICC-KRCF"},
    {"completion_create's owner", try_completion_owner, OWNER, OTHER, /* (1) */
                                                                   "-ISSXKRCF"},
    {"completion_send", try_completion_send, REPLY, OTHER,         "IISS-KRCF"},
    {"completion_set_timeout", try_completion_set_timeout, REPLY, OTHER,
                                                                   "IISS-KRCF"},
    {"completion_set_timeout's queue", try_completion_queue, QUEUE, OTHER,
                                                                   "IISSXKRCF"},
    {"thunk_create", try_thunk_create, REGISTRY, OTHER,            "IICC-KRCF"},
    {"thunk_create's token", try_thunk_token, TOKEN, OTHER,        "IISSXKRCF"},
    {"thunk_function", try_thunk_function, THUNK, OTHER, /* (7) */ "SSSS-SSSS"},
    {"cookie", try_cookie, TOKEN, OTHER,                           "OOOOOOOOO"},
};

/* ---------------------------------------------------- running the table -- */

/* What a refused attempt must leave alone. */
static bool is_same(const cbr_statistics *before, const cbr_statistics *after,
                    uint64_t refusals) {
  return before->live_tokens == after->live_tokens &&
         before->live_owners == after->live_owners &&
         before->live_leases == after->live_leases &&
         before->live_slots == after->live_slots &&
         before->live_signals == after->live_signals &&
         before->live_queues == after->live_queues &&
         before->live_sessions == after->live_sessions &&
         before->live_tasks == after->live_tasks &&
         before->live_replies == after->live_replies &&
         before->live_thunks == after->live_thunks &&
         before->unsettled == after->unsettled &&
         before->registered == after->registered &&
         before->ended == after->ended &&
         before->abandoned == after->abandoned &&
         before->slots == after->slots &&
         before->retired_slots == after->retired_slots &&
         before->memory_bytes == after->memory_bytes &&
         before->refused + refusals == after->refused;
}

static void check_bystanders(void) {
  for (int kind = TOKEN; kind < KINDS; kind++) {
    CHECK(cbr_is_live(world.live[kind]));
    CHECK(cbr_is_live(world.foreign[kind]));
    CHECK(cbr_is_live(world.dead[kind].holder));
  }
  EQUAL(0, destroyed(&world.context));
}

static void try_cell(const struct row *row, enum column column,
                     cbr_handle handle) {
  WITHIN("%s(%s)", row->name, column_names[column]);
  cbr_statistics home = statistics_of(world.home);
  cbr_statistics twin = statistics_of(world.twin);
  cbr_status status = row->attempt(handle);
  expect_cell(row->cells[column], status);
  /* try_call enters twice. */
  uint64_t refusals = row->is_call && (column == STALE || column == REUSED)
                          ? 1 + (row->attempt == try_call) : 0;
  cbr_statistics home_after = statistics_of(world.home);
  cbr_statistics twin_after = statistics_of(world.twin);
  CHECK(is_same(&home, &home_after, refusals));
  CHECK(is_same(&twin, &twin_after, 0));
  check_bystanders();
}

static void try_wrong_kinds(const struct row *row) {
  for (int kind = TOKEN; kind < KINDS; kind++) {
    if (kind != row->kind) try_cell(row, WRONG_KIND, world.live[kind]);
  }
}

static void try_row(const struct row *row) {
  const struct dead *dead = &world.dead[row->kind];
  bool is_delegate = row->attempt == try_session_delegate ||
                     row->attempt == try_reply_successor;
  const cbr_handle handles[COLUMNS] = {
      CBR_NONE, UINT64_MAX, dead->stale, dead->reused,
      is_delegate ? world.of_twin.delegate : world.foreign[row->kind], 0, 0,
      world.closed[row->kind], 0};
  for (enum column column = ZERO; column < FORKED; column++) {
    if (row->cells[column] == '-') continue;
    if (column == WRONG_KIND) {
      try_wrong_kinds(row);
    } else if (column == RANDOM) {
      for (int word = 0; word < 100; word++)
        try_cell(row, RANDOM, next_random());
    } else {
      try_cell(row, column, handles[column]);
    }
  }
}

#define ROWS (sizeof table / sizeof *table)

static void C10_everyFunctionAnswersEveryHandle(void) {
  make_world();
  for (size_t row = 0; row < ROWS; row++) try_row(&table[row]);
  end_world();
}

/* In the child the handles of the parent are good in every other respect. */
static void try_forked(void) {
  for (size_t row = 0; row < ROWS; row++) {
    const struct row *each = &table[row];
    WITHIN("%s(%s)", each->name, column_names[FORKED]);
    cbr_status status = each->attempt(world.live[each->kind]);
    expect_cell(each->cells[FORKED], status);
  }
  EQUAL(0, destroyed(&world.context));
  /* A new registry works, and none of its handles is one of the parent's. */
  cbr_registry registry = open_registry("child", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token token = add(registry, "child", &context, true, CBR_NONE);
  CHECK(calls(token));
  for (int kind = TOKEN; kind < KINDS; kind++) {
    CHECK(registry != world.live[kind] && token != world.live[kind]);
    CHECK(!cbr_is_live(world.live[kind]));
  }
  close_registry(registry);
  EQUAL(1, destroyed(&context));
}

static void C10_everyFunctionRefusesInheritedHandles(void) {
  make_world();
  cbr_statistics before = statistics_of(world.home);
  CHECK(holds_in_child(try_forked));
  cbr_statistics after = statistics_of(world.home);
  CHECK(is_same(&before, &after, 0));
  check_bystanders();
  end_world();
}

/* The parent's writer may be inside SQLite when the process forks: none of the
 * locks that it holds there may hold the child up (H4). */
static bool keeps_writing;

static void *keep_writing(void *argument) {
  while (__atomic_load_n(&keeps_writing, __ATOMIC_SEQ_CST)) {
    EXPECT(CBR_OK, cbr_audit_note(*(cbr_registry *)argument, 0, "busy"));
    EXPECT(CBR_OK, cbr_audit_flush(*(cbr_registry *)argument,
                                   CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
  }
  return NULL;
}

static void use_new_registry(void) {
  struct counted context = {0};
  cbr_registry registry = open_registry("child", CBR_LEVEL_CALLS);
  cbr_token token = add(registry, "child", &context, true, CBR_NONE);
  CHECK(calls(token));
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  close_registry(registry);
  EQUAL(1, destroyed(&context));
}

static void H4_aChildsNewRegistryWorksWhateverTheParentWrites(void) {
  cbr_registry registries[2];
  pthread_t threads[2];
  __atomic_store_n(&keeps_writing, true, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++) {
    registries[i] = open_registry("busy", CBR_LEVEL_CALLS);
    CHECK(pthread_create(&threads[i], NULL, keep_writing, &registries[i]) ==
          0);
  }
  int held = 0, forks = TIMES(40, 15);
  for (int i = 0; i < forks; i++) held += holds_in_child(use_new_registry);
  EQUAL(forks, held);
  __atomic_store_n(&keeps_writing, false, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    EQUAL(0, statistics_of(registries[i]).events_lost);
    close_registry(registries[i]);
  }
}

/* -------------------------------------------------------- the scenarios -- */

static void C5_noHandleIsZeroOrAllOnes(void) {
  cbr_registry registry = open_registry("extremes", CBR_LEVEL_OFF);
  struct parts parts = make_parts(registry);
  parts.token = add(registry, "token", &world.context, false, CBR_NONE);
  for (int i = 0; i < TIMES(100000, 10000); i++) {
    cbr_handle handle = make(i % REGISTRY, &parts);
    if (handle == 0 || handle == UINT64_MAX) {
      CHECK(!"a value that stands for no handle was given out");
      break;
    }
    EXPECT(CBR_OK, cbr_invalidate(handle, CBR_REASON_ENDED));
    if (i % 1000 > 0) continue;
    end(parts.session); /* with the tasks of its replies */
    parts.session = add_session(&parts);
  }
  close_registry(registry);
}

static void C9_aRefusalIsOfTheFormerRegistration(void) {
  cbr_registry registry = open_registry("slots", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token old = add(registry, "the former one", &context, true, CBR_NONE);
  end(old);
  cbr_token new;
  for (;;) {
    new = add(registry, "the new one", &context, true, CBR_NONE);
    if (slot_of(new) == slot_of(old)) break;
    end(new);
  }
  int destroyed_before = destroyed(&context);
  EXPECT(CBR_E_STALE, try_enter(old));
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  char text[4096];
  EXPECT(CBR_OK, cbr_explain(old, text, sizeof text, NULL));
  CHECK(strstr(text, "the former one") != NULL);
  CHECK(strstr(text, "the new one") == NULL);
  CHECK(strstr(text, "refused") != NULL);
  EXPECT(CBR_OK, cbr_explain(new, text, sizeof text, NULL));
  CHECK(strstr(text, "the new one") != NULL);
  CHECK(strstr(text, "the former one") == NULL);
  CHECK(calls(new));
  EQUAL(destroyed_before, destroyed(&context));
  close_registry(registry);
}

static void C11_twoRegistriesOfOneShapeDoNotMix(void) {
  make_world();
  cbr_token token;
  EXPECT(CBR_E_FOREIGN,
         CBR_REGISTER(world.home, "mixed", count_call, &world.context, NULL,
                      world.foreign[OWNER], &token));
  CHECK(strstr(cbr_last_error(), "owner 0x") != NULL);
  EXPECT(CBR_E_FOREIGN,
         cbr_audit_note(world.twin, world.live[TOKEN], "mixed"));
  EQUAL(0, statistics_of(world.home).events_lost);
  EQUAL(0, statistics_of(world.twin).events_lost);
  check_bystanders();
  end_world();
}

/* Each history tells of what its own registry had, and of no more. */
static void C11_twoHistoriesOfOneShapeDoNotMix(void) {
  history kept[2];
  cbr_registry registries[2];
  cbr_token tokens[2];
  struct counted contexts[2] = {{0}};
  for (int i = 0; i < 2; i++) {
    registries[i] = open_with_history(&kept[i], "twin", CBR_LEVEL_CALLS);
    tokens[i] = add(registries[i], i ? "right" : "left", &contexts[i], true,
                    CBR_NONE);
  }
  for (int i = 0; i < 100; i++) CHECK(calls(tokens[i % 4 == 0]));
  for (int i = 0; i < 2; i++) {
    EXPECT(CBR_E_FOREIGN,
           cbr_audit_note(registries[i], tokens[1 - i], "mixed"));
    end(tokens[i]);
    for (int j = 0; j <= i; j++) EXPECT(CBR_E_STALE, try_enter(tokens[i]));
  }
  for (int i = 0; i < 2; i++) {
    char query[200];
    close_registry(registries[i]);
    check_history(&kept[i]);
    EQUAL(i ? 25 : 75, number_in(&kept[i], "SELECT count(*) FROM call"));
    EQUAL(i + 1, number_in(&kept[i], "SELECT refused FROM conservation "
                                     "WHERE token = 'total'"));
    EQUAL(1, number_in(&kept[i], "SELECT count(*) FROM token_life "
                                 "WHERE kind = 'token'"));
    snprintf(query, sizeof query,
             "SELECT * FROM token_life WHERE label = '%s'",
             i ? "left" : "right");
    expect_no_rows(&kept[i], query);
    remove_history(&kept[i]);
  }
}

/* A changed bit can make one live handle into another. */
static bool is_of_the_world(cbr_handle word) {
  if (word == world.home || word == world.twin ||
      word == world.dead[REGISTRY].holder)
    return true;
  for (int i = 0; i < world.known_count; i++)
    if (word == world.known[i]) return true;
  return false;
}

/* Whatever is passed by mistake: random words, addresses of a handle instead
 * of the handle, and handles with some bits changed. */
static void C13_randomWordsAreNeverAccepted(void) {
  make_world();
  int count = TIMES(10000000, 300000);
  long accepted = 0;
  cbr_handle handles[KINDS * 4];
  memcpy(handles, world.live, sizeof world.live);
  memcpy(handles + KINDS, world.foreign, sizeof world.foreign);
  memcpy(handles + 2 * KINDS, world.closed, sizeof world.closed);
  for (int kind = TOKEN; kind < KINDS; kind++)
    handles[3 * KINDS + kind] = world.dead[kind].reused;
  for (int i = 0; i < count; i++) {
    uint64_t random = next_random();
    cbr_handle word = random;
    if (i % 4 == 1) word = (uintptr_t)&handles[random % (KINDS * 4)];
    if (i % 4 == 2) word = handles[random % (KINDS * 4)] ^ 1ull << random % 64;
    if (i % 4 == 3) word = handles[random % (KINDS * 4)] + (random >> 60) + 1;
    if (is_of_the_world(word)) continue;
    cbr_call call;
    accepted += cbr_is_live(word);
    accepted += cbr_enter(word, &call) == CBR_OK;
  }
  EQUAL(0, accepted);
  check_bystanders();
  end_world();
}

static bool is_taken(cbr_status status) { return status >= CBR_OK; }

/* Words of no shape at all, on what would do most harm; the slower functions
 * see every sixteenth. */
static void C13_randomWordsEndNothing(void) {
  make_world();
  cbr_statistics before = statistics_of(world.home);
  int count = TIMES(10000000, 100000);
  long accepted = 0;
  for (int i = 0; i < count; i++) {
    cbr_handle word = next_random();
    cbr_call call;
    cbr_lease_handle lease;
    accepted += cbr_is_live(word);
    accepted += is_taken(cbr_enter(word, &call));
    accepted += is_taken(cbr_invalidate(word, CBR_REASON_ENDED));
    accepted += is_taken(cbr_invalidate_wait(word, CBR_REASON_ENDED, 0));
    if (i % 16) continue;
    accepted += is_taken(cbr_lease(word, &lease));
    accepted += is_taken(cbr_explain(word, NULL, 0, NULL));
    accepted += is_taken(cbr_impact(word, must_not_visit, NULL));
    accepted += is_taken(cbr_lease_end(word));
  }
  EQUAL(0, accepted);
  cbr_statistics after = statistics_of(world.home);
  CHECK(is_same(&before, &after, 0));
  check_bystanders();
  end_world();
}

static void C18_aSecondEndHarmsNoNewHolder(void) {
  make_world();
  for (int kind = TOKEN; kind < KINDS; kind++) {
    WITHIN("kind %d", kind);
    EXPECT(CBR_ALREADY, try_invalidate(world.dead[kind].reused));
    EXPECT(CBR_ALREADY, try_invalidate_wait(world.dead[kind].reused));
  }
  check_bystanders();
  CHECK(calls(world.dead[TOKEN].holder));
  end_world();
}

static void C21_aConsumedOneShotIsEndedOnce(void) {
  cbr_registry registry = open_registry("one-shots", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = (cbr_function)count_call;
  what.context = &context;
  what.destroy = count_destroy;
  what.flags = CBR_ONE_SHOT;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  CHECK(calls(token));
  EQUAL(1, destroyed(&context));
  EXPECT(CBR_E_CONSUMED, try_enter(token));
  EXPECT(CBR_ALREADY, try_invalidate(token));
  /* Also when its slot has another holder. */
  struct counted other = {0};
  cbr_token holder;
  for (;;) {
    holder = add(registry, "holder", &other, true, CBR_NONE);
    if (slot_of(holder) == slot_of(token)) break;
    end(holder);
  }
  int destroyed_before = destroyed(&other);
  EXPECT(CBR_ALREADY, try_invalidate(token));
  EXPECT(CBR_ALREADY, try_invalidate_wait(token));
  EQUAL(destroyed_before, destroyed(&other));
  CHECK(calls(holder));
  close_registry(registry);
}

static void D3_oldTokensAreAnsweredAfterTheRegistryIsGone(void) {
  cbr_registry registry = open_registry("gone", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_owner owner = add_owner(registry, "owner");
  cbr_token token = add(registry, "listener", &context, true, owner);
  close_registry(registry);
  EQUAL(1, destroyed(&context));
  EXPECT(CBR_E_CLOSED, try_invalidate(token));
  EXPECT(CBR_E_CLOSED, try_invalidate_wait(token));
  EXPECT(CBR_E_CLOSED, try_invalidate(owner));
  EXPECT(CBR_E_CLOSED, try_enter(token));
  EXPECT(CBR_ALREADY, try_close(registry));
  /* Nor when another registry has got its slots. */
  cbr_registry next[64];
  for (int i = 0; i < 64; i++) next[i] = open_registry("next", CBR_LEVEL_OFF);
  EXPECT(CBR_E_CLOSED, try_invalidate(token));
  EXPECT(CBR_E_CLOSED, try_enter(token));
  EXPECT(CBR_ALREADY, try_close(registry));
  for (int i = 0; i < 64; i++) {
    CHECK(cbr_is_live(next[i]));
    close_registry(next[i]);
  }
  EQUAL(1, destroyed(&context));
}

static void G4_slotsAreReusedFirstInFirstOut(void) {
  cbr_registry registry = open_registry("queue", CBR_LEVEL_OFF);
  enum { COUNT = 5 };
  cbr_token tokens[COUNT];
  static const int order[COUNT] = {3, 0, 4, 1, 2};
  for (int i = 0; i < COUNT; i++)
    tokens[i] = add(registry, "x", &world.context, false, CBR_NONE);
  for (int i = 0; i < COUNT; i++) end(tokens[order[i]]);
  /* Every slot that was free before comes first. */
  uint64_t free = statistics_of(registry).slots - COUNT - 1;
  for (uint64_t i = 0; i < free; i++)
    (void)add(registry, "y", &world.context, false, CBR_NONE);
  for (int i = 0; i < COUNT; i++) {
    cbr_token next = add(registry, "z", &world.context, false, CBR_NONE);
    EQUAL(slot_of(tokens[order[i]]), slot_of(next));
    CHECK(next != tokens[order[i]]);
  }
  close_registry(registry);
}

static void G5_aForgottenHandleLeaksNothing(void) {
  cbr_registry registry = open_registry("forgetful", CBR_LEVEL_OFF);
  struct counted context = {0};
  for (int i = 0; i < 1000; i++)
    (void)add(registry, "forgotten", &context, true, CBR_NONE);
  cbr_token token = add(registry, "copied", &context, true, CBR_NONE);
  cbr_token copies[100];
  for (int i = 0; i < 100; i++) copies[i] = token;
  end(copies[7]);
  for (int i = 0; i < 100; i++) CHECK(!cbr_is_live(copies[i]));
  EQUAL(1, destroyed(&context));
  close_registry(registry);
  EQUAL(1001, destroyed(&context));
}

/* ------------------------------------------------- no value comes twice -- */

enum { CHURNERS = 64 };

struct churn {
  cbr_registry registry;
  uint64_t *handles;
  int count;
};

/* Every kind of handle takes its values from one table. */
static void *churn(void *argument) {
  struct churn *mine = argument;
  struct counted context = {0};
  cbr_token token = add(mine->registry, "x", &context, false, CBR_NONE);
  for (int i = 0; i < mine->count; i++) {
    cbr_handle handle = CBR_NONE;
    cbr_status status = CBR_OK;
    if (i % 64 == 1) {
      status = cbr_owner_create(mine->registry, "x", &handle);
    } else if (i % 64 == 2) {
      status = cbr_lease(token, &handle);
    } else {
      status = CBR_REGISTER(mine->registry, "x", count_call, &context, NULL,
                            CBR_NONE, &handle);
    }
    if (status != CBR_OK) EXPECT(CBR_OK, status);
    mine->handles[i] = handle;
    (void)!cbr_invalidate(handle, CBR_REASON_ENDED);
  }
  end(token);
  return NULL;
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

static void C8_noValueIsGivenOutTwice(void) {
  /* Some of them are owners and leases. */
  const int registrations = TIMES(100000, 1000);
  int count = registrations * 64 / 62 + 64;
  size_t total = (size_t)CHURNERS * (size_t)count;
  uint64_t *handles = malloc(total * sizeof *handles);
  cbr_registry registries[2] = {open_registry("even", CBR_LEVEL_OFF),
                                open_registry("odd", CBR_LEVEL_OFF)};
  pthread_t threads[CHURNERS];
  struct churn each[CHURNERS];
  for (int i = 0; i < CHURNERS; i++) {
    each[i].registry = registries[i % 2];
    each[i].handles = handles + (size_t)i * (size_t)count;
    each[i].count = count;
    CHECK(pthread_create(&threads[i], NULL, churn, &each[i]) == 0);
  }
  for (int i = 0; i < CHURNERS; i++) pthread_join(threads[i], NULL);
  qsort(handles, total, sizeof *handles, compare);
  size_t twice = 0;
  for (size_t i = 1; i < total; i++) twice += handles[i] == handles[i - 1];
  EQUAL(0, twice);
  CHECK(handles[0] != 0 && handles[total - 1] != UINT64_MAX);
  for (int i = 0; i < 2; i++) {
    cbr_statistics now = statistics_of(registries[i]);
    EQUAL(0, now.live_tokens);
    CHECK(now.registered >= (uint64_t)CHURNERS / 2 * registrations);
    close_registry(registries[i]);
  }
  free(handles);
}

/* -------------------------------------------- in a process of their own -- */

/* Runs this program anew, with one argument and one more variable in its
 * environment, and gives what it exits with. */
static int run_anew(const char *part, const char *argument,
                    const char *variable) {
  char *arguments[] = {(char *)"handles", (char *)part, (char *)argument,
                       NULL};
  size_t count = 0;
  while (environ[count]) count++;
  char **environment = calloc(count + 2, sizeof *environment);
  memcpy(environment, environ, count * sizeof *environment);
  environment[count] = (char *)variable;
  pid_t child;
  int status = -1;
  fflush(NULL);
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments,
                  environment) == 0)
    waitpid(child, &status, 0);
  free(environment);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The registry itself takes one slot of the first 256. Each slot gives out
 * `generations` handles; slots take turns. */
static uint64_t expected_retired(uint64_t ended, uint64_t generations) {
  uint64_t retired = 0, slots = 255;
  while (ended > slots * (generations - 1)) {
    uint64_t used_up = ended - slots * (generations - 1);
    if (used_up < slots) return retired + used_up;
    retired += slots;
    ended -= slots * generations;
    slots = 256;
  }
  return retired;
}

static uint64_t expected_slots(uint64_t registered, uint64_t generations) {
  uint64_t chunks = 1, slots = 255;
  while (registered > slots * generations) {
    registered -= slots * generations;
    chunks++;
    slots = 256;
  }
  return chunks * 256;
}

static int retire_slots(uint64_t generations, uint64_t count) {
  cbr_registry registry = open_registry("ageing", CBR_LEVEL_OFF);
  uint64_t bytes = statistics_of(registry).memory_bytes;
  uint64_t kept = count < 1000000 ? count : 1000000;
  uint64_t *seen = malloc(kept * sizeof *seen);
  cbr_token ancient = CBR_NONE;
  for (uint64_t i = 0; i < count; i++) {
    cbr_token token = add(registry, "x", &world.context, false, CBR_NONE);
    if (i == 0) ancient = token;
    if (i > 0 && cbr_is_live(ancient)) CHECK(!"an ancient token came back");
    if (i < kept) seen[i] = token;
    end(token);
    /* Often at first, then now and then. */
    if (i > 3000 && i % 997 != 0) continue;
    cbr_statistics now = statistics_of(registry);
    uint64_t retired = expected_retired(i + 1, generations);
    uint64_t slots = expected_slots(i + 1, generations);
    EQUAL(retired, now.retired_slots);
    EQUAL(slots - retired, now.slots);
    EQUAL(bytes * (slots / 256), now.memory_bytes);
    EXPECT(CBR_E_STALE, try_enter(ancient));
    EXPECT(CBR_ALREADY, try_invalidate(ancient));
    if (failures_of_test) break;
  }
  qsort(seen, kept, sizeof *seen, compare);
  for (uint64_t i = 1; i < kept; i++) {
    if (seen[i] == seen[i - 1]) {
      CHECK(!"a value was given out twice");
      break;
    }
  }
  free(seen);
  close_registry(registry);
  return failures_of_test != 0;
}

/* Whole chunks are passed from a closed registry to the next one, and wear
 * out likewise. */
static int retire_registries(void) {
  enum { COUNT = 200 };
  cbr_registry seen[COUNT];
  cbr_token tokens[COUNT];
  struct counted context = {0};
  for (int i = 0; i < COUNT; i++) {
    seen[i] = open_registry("brief", CBR_LEVEL_OFF);
    tokens[i] = add(seen[i], "x", &context, true, CBR_NONE);
    for (int former = 0; former < i; former++) {
      CHECK(seen[former] != seen[i] && tokens[former] != tokens[i]);
      CHECK(!cbr_is_live(seen[former]) && !cbr_is_live(tokens[former]));
    }
    if (i > 0) {
      EXPECT(CBR_E_CLOSED, try_enter(tokens[0]));
      EXPECT(CBR_E_CLOSED, try_statistics(seen[0]));
    }
    close_registry(seen[i]);
    EQUAL(i + 1, destroyed(&context));
  }
  return failures_of_test != 0;
}

static void C1_aSlotThatIsUsedUpIsRetired(void) {
  EQUAL(0, run_anew("slots", "1", "CBR_TEST_GENERATIONS=1"));
  EQUAL(0, run_anew("slots", "2", "CBR_TEST_GENERATIONS=2"));
  EQUAL(0, run_anew("slots", "7", "CBR_TEST_GENERATIONS=7"));
  EQUAL(0, run_anew("registries", "1", "CBR_TEST_GENERATIONS=1"));
  EQUAL(0, run_anew("registries", "3", "CBR_TEST_GENERATIONS=3"));
}

/* Each width of the generation, from one handle a slot to 4096. */
static void C4_slotsOfEachWidthAreRetired(void) {
  for (int width = 0; width <= TIMES(12, 7); width++) {
    char number[16], variable[64];
    WITHIN("width %d", width);
    snprintf(number, sizeof number, "%d", 1 << width);
    snprintf(variable, sizeof variable, "CBR_TEST_GENERATIONS=%s", number);
    EQUAL(0, run_anew("width", number, variable));
  }
}

static void C2_longChurnRetiresByTheFormula(void) {
  EQUAL(0, run_anew("churn", "1000", "CBR_TEST_GENERATIONS=1000"));
}

/* What needs a slot, when there is none. */
static void expect_limits(cbr_registry registry, cbr_token token) {
  cbr_registration it = CBR_REGISTRATION_INIT;
  cbr_handle handle = 1;
  it.label = "one too many";
  it.function = (cbr_function)end;
  EXPECT(CBR_E_LIMIT, cbr_register(registry, &it, &handle));
  EQUAL(CBR_NONE, handle);
  handle = 1;
  EXPECT(CBR_E_LIMIT, cbr_owner_create(registry, "owner", &handle));
  EQUAL(CBR_NONE, handle);
  handle = 1;
  EXPECT(CBR_E_LIMIT, cbr_lease(token, &handle));
  EQUAL(CBR_NONE, handle);
  handle = 1;
  EXPECT(CBR_E_LIMIT, cbr_registry_open(NULL, &handle));
  EQUAL(CBR_NONE, handle);
  CHECK(strstr(cbr_last_error(), "limit") != NULL);
}

/* A process has its last chunks of slots: their handles are like others, and
 * when they are used up nothing has changed. One that ends makes room. */
static int use_all_slots(uint64_t chunks) {
  uint64_t room = chunks * 256 - 1;
  struct counted context = {0};
  cbr_registry registry = open_registry("full", CBR_LEVEL_CALLS);
  cbr_token *tokens = malloc(room * sizeof *tokens);
  for (uint64_t i = 0; i < room; i++)
    tokens[i] = add(registry, "x", &context, true, CBR_NONE);
  for (int times = 0; times < 3; times++) {
    expect_limits(registry, tokens[0]);
    EQUAL(room, statistics_of(registry).live_tokens);
    EQUAL(chunks * 256, statistics_of(registry).slots);
    for (uint64_t i = 0; i < room; i++)
      EXPECT(CBR_OK, try_enter(tokens[i]));
    uint64_t last = times == 0 ? room - 1 : (uint64_t)times;
    end(tokens[last]);
    EXPECT(CBR_E_STALE, try_enter(tokens[last]));
    tokens[last] = add(registry, "x", &context, true, CBR_NONE);
  }
  close_registry(registry);
  EQUAL(room + 3, destroyed(&context));
  /* Its chunks are another one's. */
  registry = open_registry("next", CBR_LEVEL_CALLS);
  end(add(registry, "x", &context, true, CBR_NONE));
  close_registry(registry);
  free(tokens);
  return failures_of_test != 0;
}

static void G2_slotsThatAreUsedUpAreALimit(void) {
  EQUAL(0, run_anew("all", "1", "CBR_TEST_CHUNKS=1"));
  EQUAL(0, run_anew("all", "4", "CBR_TEST_CHUNKS=4"));
}

/* The first handles of a process, left where another process sees them. */
static cbr_handle *first_handles;

static void note_first_handles(void) {
  first_handles[0] = open_registry("first", CBR_LEVEL_OFF);
  first_handles[1] = add(first_handles[0], "x", &world.context, false,
                         CBR_NONE);
}

static int refuse_first_handles(const char *list) {
  char *rest;
  cbr_handle registry = strtoull(list, &rest, 16);
  cbr_handle token = strtoull(rest, NULL, 16);
  /* The same steps, in another run. */
  cbr_registry own = open_registry("first", CBR_LEVEL_OFF);
  cbr_token own_token = add(own, "x", &world.context, false, CBR_NONE);
  CHECK(slot_of(own) == slot_of(registry));
  CHECK(slot_of(own_token) == slot_of(token));
  CHECK(own != registry && own_token != token);
  cbr_status status = try_enter(token);
  CHECK(status == CBR_E_STALE || status == CBR_E_CLOSED);
  CHECK(!cbr_is_live(token) && !cbr_is_live(registry));
  status = try_statistics(registry);
  CHECK(status == CBR_E_STALE || status == CBR_E_CLOSED);
  CHECK(cbr_is_live(own_token));
  close_registry(own);
  return failures_of_test != 0;
}

static void G3_anEarlierRunsHandlesAreRefused(void) {
  char list[64];
  snprintf(list, sizeof list, "%llx %llx",
           (unsigned long long)first_handles[0],
           (unsigned long long)first_handles[1]);
  for (int i = 0; i < 5; i++)
    EQUAL(0, run_anew("first", list, "CBR_TEST_GENERATIONS=0"));
}

/* A part that run_anew asks for. */
static int run_part(const char *part, const char *argument) {
  uint64_t number = strtoull(argument, NULL, 10);
  if (strcmp(part, "slots") == 0) return retire_slots(number, 5000);
  if (strcmp(part, "churn") == 0)
    return retire_slots(number, TIMES(10000000, 100000));
  if (strcmp(part, "width") == 0) return retire_slots(number, 600 * number);
  if (strcmp(part, "all") == 0) return use_all_slots(number);
  if (strcmp(part, "registries") == 0) return retire_registries();
  if (strcmp(part, "first") == 0) return refuse_first_handles(argument);
  return 2;
}

int main(int count, char **arguments) {
  if (count == 3) return run_part(arguments[1], arguments[2]);
  /* Before anything else of this process. */
  first_handles = malloc(2 * sizeof *first_handles);
  note_first_handles();
  TEST(C10_everyFunctionAnswersEveryHandle);
  TEST(C10_everyFunctionRefusesInheritedHandles);
  TEST(H4_aChildsNewRegistryWorksWhateverTheParentWrites);
  TEST(C5_noHandleIsZeroOrAllOnes);
  TEST(C9_aRefusalIsOfTheFormerRegistration);
  TEST(C11_twoRegistriesOfOneShapeDoNotMix);
  TEST(C11_twoHistoriesOfOneShapeDoNotMix);
  TEST(C13_randomWordsAreNeverAccepted);
  TEST(C13_randomWordsEndNothing);
  TEST(C18_aSecondEndHarmsNoNewHolder);
  TEST(C21_aConsumedOneShotIsEndedOnce);
  TEST(D3_oldTokensAreAnsweredAfterTheRegistryIsGone);
  TEST(G4_slotsAreReusedFirstInFirstOut);
  TEST(G5_aForgottenHandleLeaksNothing);
  TEST(C8_noValueIsGivenOutTwice);
  TEST(C1_aSlotThatIsUsedUpIsRetired);
  TEST(C4_slotsOfEachWidthAreRetired);
  TEST(C2_longChurnRetiresByTheFormula);
  TEST(G2_slotsThatAreUsedUpAreALimit);
  TEST(G3_anEarlierRunsHandlesAreRefused);
  free(first_handles);
  return finish();
}
