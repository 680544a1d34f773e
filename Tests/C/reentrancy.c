/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function may be called from inside any callback, destroy or visitor,
 * on its own handle or any other (G12), and no lock is held there (G13). The
 * table below has a row for each function and a column for each place; a cell
 * has three letters, for the token whose callback, destroy or visit it is, for
 * another token, and for the owner of the first (B4, B6, B20, D14). Around every
 * attempt the whole scene is made anew, and taken down afterwards. In the table
 * of signals the token is a handler, whose callback is called by an emission; in
 * that of sessions it is a delegate, and its callback did_receive_response.
 */
#include "fixture.h"

/* ------------------------------------------------------------ the scene -- */

enum place {
  IN_CALLBACK,
  IN_DESTROY,         /* of a token that was ended by itself */
  IN_DESTROY_LEAVING, /* that runs where its last call is left */
  IN_DESTROY_LEASED,  /* that runs where its last lease ends */
  IN_OWNERS_END,      /* a destroy because the owner died */
  IN_CLOSE,           /* a destroy because the registry is closed */
  IN_EACH_LIVE,       /* a visitor of the registry */
  IN_IMPACT,          /* a visitor of the owner */
  PLACES
};

static const char *const place_names[PLACES] = {
    "callback", "destroy", "destroy at leave", "destroy at lease end",
    "destroy at owner's end", "destroy at close", "each_live visitor",
    "impact visitor"};

/* Which of a row's cells a place has. */
static const int cell_of_place[PLACES] = {0, 1, 1, 1, 2, 3, 4, 4};

enum subject { OWN, ANOTHER, OWNERS, SUBJECTS };

static const char *const subject_names[SUBJECTS] = {"own", "another",
                                                    "the owner"};

struct row {
  const char *name;
  /* Gets the handles of a subject. */
  cbr_status (*attempt)(enum subject subject);
  const char *cells[5];
};

/* What the own token and the other one are. */
enum role { PLAIN, HANDLER, DELEGATE };

static struct scene {
  cbr_registry registry, another;
  cbr_owner owner;
  cbr_token own, other;
  cbr_lease_handle own_lease, other_lease;
  cbr_call own_call, other_call; /* the first one inside, in a callback */
  struct counted own_context, other_context, new_context;
  int registered; /* with new_context, by attempts */
  int object;
  enum role role;
  /* By subject: of the own token, and of the other one. */
  cbr_slot slots[2];
  cbr_signal signals[2];
  cbr_session sessions[2];
  cbr_task tasks[2];
  cbr_reply replies[2], completions[2];
  cbr_queue queues[2];
  cbr_thunk thunks[2];
  cbr_function called[2]; /* their addresses */
  cbr_token spare_delegates[2]; /* of the own registry, and of the other */
  /* What is tried, where, and how often it was. */
  enum place place;
  const struct row *row;
  enum subject subject;
  int attempts;
  bool is_open; /* the registry, still */
} scene;

static cbr_handle handle_of(enum subject subject) {
  const cbr_handle handles[SUBJECTS] = {scene.own, scene.other, scene.owner};
  return handles[subject];
}

static cbr_registry registry_of(enum subject subject) {
  return subject == OWN ? scene.registry : scene.another;
}

/* The attempt of this scene, once. */
static void attempt(void) {
  if (scene.attempts++ > 0) return;
  WITHIN("%s in a %s, on %s", scene.row->name, place_names[scene.place],
         subject_names[scene.subject]);
  cbr_status status = scene.row->attempt(scene.subject);
  const char *cells = scene.row->cells[cell_of_place[scene.place]];
  expect_cell(cells[scene.subject], status);
}

static void own_function(void *context) {
  struct counted *own = context;
  count_call(own);
  if (scene.place == IN_DESTROY_LEAVING && scene.role != PLAIN) {
    EXPECT(CBR_DEFERRED, cbr_invalidate(scene.own, CBR_REASON_ENDED));
    EQUAL(0, scene.attempts);
  }
  if (scene.place != IN_CALLBACK || scene.attempts > 0) return;
  attempt();
  /* What was captured is still there, whatever has ended (A7). */
  EQUAL(0, destroyed(own));
}

static void own_destroy(void *context) {
  count_destroy(context);
  if (scene.place >= IN_DESTROY && scene.place <= IN_CLOSE) attempt();
}

static cbr_disposition own_handler(void *context, void *argument) {
  (void)argument;
  own_function(context);
  return CBR_CONTINUE;
}

static cbr_disposition other_handler(void *context, void *argument) {
  (void)argument;
  count_call(context);
  return CBR_CONTINUE;
}

static void did_receive_response(void *context, cbr_task task,
                                 const void *response, size_t size,
                                 cbr_reply reply) {
  (void)response, (void)size;
  scene.replies[task == scene.tasks[OWN] ? OWN : ANOTHER] = reply;
  if (context == &scene.own_context) {
    own_function(context);
  } else {
    count_call(context);
  }
}

static void did_complete(void *context, cbr_task task, int error) {
  (void)task, (void)error;
  count_call(context);
}

static cbr_disposition own_visitor(void *context, const cbr_item *item) {
  (void)context;
  if (item->handle == scene.own) attempt();
  return CBR_CONTINUE;
}

/* ------------------------------------------------------------- attempts -- */

static cbr_status left(cbr_status status, cbr_call *call) {
  if (status == CBR_OK) EXPECT(CBR_OK, cbr_leave(call));
  return status;
}

static cbr_status try_is_live(enum subject subject) {
  return cbr_is_live(handle_of(subject)) ? CBR_OK : CBR_E_STALE;
}

static cbr_status try_enter(enum subject subject) {
  cbr_call call;
  return left(cbr_enter(handle_of(subject), &call), &call);
}

static cbr_status try_enter_typed(enum subject subject) {
  cbr_call call;
  return left(cbr_enter_typed(handle_of(subject), 0, &call), &call);
}

static const cbr_method methods[] = {{"method", CBR_METHOD_REQUIRED, 0}};
static const cbr_interface interface = {sizeof(cbr_interface), "reentrancy", 1,
                                        1, methods};

static cbr_status try_enter_method(enum subject subject) {
  cbr_call call;
  return left(cbr_enter_method(handle_of(subject), &interface, 0, &call),
              &call);
}

static cbr_status try_method(enum subject subject) {
  cbr_call call;
  cbr_status status =
      cbr_enter_method(handle_of(subject), &interface, 0, &call);
  if (status == CBR_OK) CHECK(call.function != NULL);
  return left(status, &call);
}

enum { TAG = 7 };

static cbr_status try_tagged(enum subject subject) {
  cbr_call call;
  return left(cbr_enter_typed(handle_of(subject), TAG, &call), &call);
}

/* Leaves what was entered outside. */
static cbr_status try_leave(enum subject subject) {
  return cbr_leave(subject == OWN ? &scene.own_call : &scene.other_call);
}

static cbr_status try_call(enum subject subject) {
  cbr_call call;
  cbr_status status = left(cbr_enter(handle_of(subject), &call), &call);
  CHECK(calls(handle_of(subject)) == (status == CBR_OK));
  return status;
}

static cbr_status try_responds(enum subject subject) {
  return cbr_responds(handle_of(subject), &interface, 0);
}

static cbr_status try_has_method(enum subject subject) {
  return cbr_responds(handle_of(subject), &interface, 0);
}

static cbr_status try_lease(enum subject subject) {
  cbr_lease_handle lease;
  cbr_call call;
  cbr_status status = cbr_lease(handle_of(subject), &lease);
  if (status != CBR_OK) return status;
  EXPECT(CBR_OK, cbr_lease_get(lease, &call));
  CHECK(call.context != NULL);
  return cbr_lease_end(lease);
}

static cbr_status try_lease_get(enum subject subject) {
  cbr_call call;
  return cbr_lease_get(subject == OWN ? scene.own_lease : scene.other_lease,
                       &call);
}

static cbr_status try_lease_end(enum subject subject) {
  return cbr_lease_end(subject == OWN ? scene.own_lease : scene.other_lease);
}

static cbr_status try_invalidate(enum subject subject) {
  return cbr_invalidate(handle_of(subject), CBR_REASON_USER);
}

static cbr_status try_wait(enum subject subject) {
  return cbr_invalidate_wait(handle_of(subject), CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_ask(enum subject subject) {
  return cbr_invalidate_wait(handle_of(subject), CBR_REASON_USER, 0);
}

static cbr_status try_explain(enum subject subject) {
  char text[1024];
  cbr_status status = cbr_explain(handle_of(subject), text, sizeof text, NULL);
  if (status == CBR_OK) CHECK(strstr(text, "0x") != NULL);
  return status;
}

static cbr_disposition look(void *context, const cbr_item *item) {
  CHECK(item->size == sizeof *item && item->handle != CBR_NONE);
  ++*(int *)context;
  return CBR_CONTINUE;
}

static cbr_status try_impact(enum subject subject) {
  int count = 0;
  cbr_status status = cbr_impact(handle_of(subject), look, &count);
  if (status != CBR_OK) EQUAL(0, count);
  return status;
}

static cbr_status try_level(enum subject subject) {
  return cbr_audit_level(handle_of(subject), CBR_LEVEL_LIFECYCLE);
}

static cbr_status try_note(enum subject subject) {
  return cbr_audit_note(scene.registry, handle_of(subject), "from inside");
}

/* Registers something new, and ends it. */
static cbr_status try_register_in(cbr_registry registry, cbr_owner owner) {
  cbr_token token;
  cbr_status status =
      CBR_REGISTER(registry, "new", count_call, &scene.new_context,
                   count_destroy, owner, &token);
  if (status != CBR_OK) return status;
  scene.registered++;
  CHECK(calls(token));
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(scene.registered, destroyed(&scene.new_context));
  return status;
}

static cbr_status try_register_owned(enum subject subject) {
  return try_register_in(scene.registry, handle_of(subject));
}

static cbr_status try_owner_create_child(enum subject subject) {
  cbr_owner child;
  return cbr_owner_create_child(handle_of(subject), "child", &child);
}

static cbr_status try_register(enum subject subject) {
  return try_register_in(registry_of(subject), CBR_NONE);
}

static cbr_status try_owner_create(enum subject subject) {
  cbr_owner owner;
  return cbr_owner_create(registry_of(subject), "new", &owner);
}

static cbr_status try_owner_for_object(enum subject subject) {
  cbr_owner owner;
  return cbr_owner_for_object(registry_of(subject), &scene.object, "object",
                              &owner);
}

static cbr_status try_object_died(enum subject subject) {
  return cbr_object_died(registry_of(subject), &scene.object);
}

static cbr_status try_registry_is_live(enum subject subject) {
  return cbr_is_live(registry_of(subject)) ? CBR_OK : CBR_E_STALE;
}

static cbr_status try_statistics(enum subject subject) {
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  return cbr_registry_statistics(registry_of(subject), &statistics);
}

static cbr_status try_each_live(enum subject subject) {
  int count = 0;
  return cbr_registry_each_live(registry_of(subject), look, &count);
}

static cbr_status try_flush(enum subject subject) {
  return cbr_audit_flush(registry_of(subject), CBR_FLUSH_DATABASE, CBR_FOREVER,
                         NULL);
}

static cbr_status try_level_of_registry(enum subject subject) {
  return cbr_audit_level(registry_of(subject), CBR_LEVEL_LIFECYCLE);
}

static cbr_status try_explain_registry(enum subject subject) {
  return cbr_explain(registry_of(subject), NULL, 0, NULL);
}

static cbr_status try_impact_of_registry(enum subject subject) {
  int count = 0;
  return cbr_impact(registry_of(subject), look, &count);
}

static cbr_status try_close(enum subject subject) {
  if (subject == OWN) scene.is_open = false;
  return cbr_registry_close(registry_of(subject), CBR_FOREVER);
}

static cbr_status try_end_registry(enum subject subject) {
  if (subject == OWN) scene.is_open = false;
  return cbr_invalidate(registry_of(subject), CBR_REASON_USER);
}

static cbr_status try_wait_for_registry(enum subject subject) {
  if (subject == OWN) scene.is_open = false;
  return cbr_invalidate_wait(registry_of(subject), CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_open(enum subject subject) {
  (void)subject;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry registry;
  cbr_status status = cbr_registry_open(&options, &registry);
  if (status != CBR_OK) return status;
  (void)try_register_in(registry, CBR_NONE);
  return cbr_registry_close(registry, CBR_FOREVER);
}

static cbr_status try_shared(enum subject subject) {
  (void)subject;
  return try_register_in(cbr_registry_shared(), CBR_NONE);
}

static cbr_status try_mark(enum subject subject) {
  (void)subject;
  size_t mark = cbr_mark();
  cbr_call call;
  cbr_token token;
  EXPECT(CBR_OK, CBR_REGISTER(scene.another, "jumped out of", count_call,
                              &scene.other_context, NULL, CBR_NONE, &token));
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_OK, cbr_unwind(mark));
  EXPECT(CBR_E_INVALID, cbr_leave(&call));
  return cbr_unwind(mark);
}

static cbr_status try_texts(enum subject subject) {
  (void)subject;
  CHECK(strcmp(cbr_version(), CBR_VERSION) == 0);
  CHECK(strcmp(cbr_status_name(CBR_E_STALE), "CBR_E_STALE") == 0);
  CHECK(cbr_status_text(CBR_E_STALE)[0] != 0);
  CHECK(cbr_last_error() != NULL);
  CHECK(cbr_from_cookie(cbr_cookie(scene.own)) == scene.own);
  return CBR_OK;
}

static cbr_status try_slot_create(enum subject subject) {
  cbr_slot slot;
  return cbr_slot_create(registry_of(subject), "new", CBR_NONE, &slot);
}

static cbr_status try_slot_set(enum subject subject) {
  return cbr_slot_set(scene.slots[OWN], handle_of(subject));
}

static cbr_status try_slot_get(enum subject subject) {
  cbr_token token = cbr_slot_get(scene.slots[subject]);
  if (token != CBR_NONE) CHECK(token == handle_of(subject));
  return token == CBR_NONE ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_slot_enter(enum subject subject) {
  cbr_call call;
  cbr_status status = cbr_slot_enter(scene.slots[subject], NULL, 0, &call);
  if (status == CBR_OK) CHECK(call.token == handle_of(subject));
  return left(status, &call);
}

static cbr_status try_slot_on_clear(enum subject subject) {
  return cbr_slot_on_clear(scene.slots[OWN], handle_of(subject));
}

static cbr_status try_end_slot(enum subject subject) {
  return cbr_invalidate(scene.slots[subject], CBR_REASON_USER);
}

static cbr_status try_queue_create(enum subject subject) {
  cbr_queue queue;
  return cbr_queue_create(registry_of(subject), NULL, &queue);
}

static cbr_status try_post(enum subject subject) {
  cbr_message message = CBR_MESSAGE_INIT;
  return cbr_post(scene.queues[OWN], handle_of(subject), &message);
}

static cbr_status try_queue_descriptor(enum subject subject) {
  return cbr_queue_descriptor(scene.queues[subject]) < 0 ? CBR_E_STALE
                                                         : CBR_OK;
}

static cbr_status try_queue_run(enum subject subject) {
  return cbr_queue_run(scene.queues[subject], 0, NULL);
}

static cbr_status try_queue_finish(enum subject subject) {
  return cbr_queue_finish(scene.queues[subject]);
}

static cbr_status try_queue_statistics(enum subject subject) {
  cbr_queue_counts counts = CBR_QUEUE_COUNTS_INIT;
  return cbr_queue_statistics(scene.queues[subject], &counts);
}

static cbr_status try_wait_for_queue(enum subject subject) {
  return cbr_invalidate_wait(scene.queues[subject], CBR_REASON_USER,
                             CBR_FOREVER);
}

static void note_completion(void *context, int error, void *value) {
  (void)error, (void)value;
  count_call(context);
}

static cbr_status create_completion(cbr_registry registry, cbr_reply *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = (cbr_function)note_completion;
  what.context = &scene.other_context;
  return cbr_completion_create(registry, &what, 0, out);
}

static cbr_status try_completion_create(enum subject subject) {
  cbr_reply completion;
  return create_completion(registry_of(subject), &completion);
}

static cbr_status try_completion_send(enum subject subject) {
  return cbr_completion_send(scene.completions[subject], 0, NULL);
}

static cbr_status try_completion_set_timeout(enum subject subject) {
  return cbr_completion_set_timeout(scene.completions[subject],
                                    scene.queues[subject], CBR_FOREVER);
}

static cbr_status try_thunk_create(enum subject subject) {
  cbr_signature signature = CBR_SIGNATURE_INIT;
  cbr_thunk thunk;
  return cbr_thunk_create(scene.registry, handle_of(subject), &signature,
                          &thunk);
}

static cbr_status try_thunk_function(enum subject subject) {
  cbr_function function = cbr_thunk_function(scene.thunks[subject]);
  CHECK(function == NULL || function == scene.called[subject]);
  return function == NULL ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_thunk(enum subject subject) {
  const struct counted *counted =
      subject == OWN ? &scene.own_context : &scene.other_context;
  int before = calls_of(counted);
  scene.called[subject]();
  return calls_of(counted) > before ? CBR_OK : CBR_E_STALE;
}

static cbr_status try_end_thunk(enum subject subject) {
  return cbr_invalidate(scene.thunks[subject], CBR_REASON_USER);
}

static cbr_status try_wait_for_thunk(enum subject subject) {
  return cbr_invalidate_wait(scene.thunks[subject], CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_current_context(enum subject subject) {
  (void)subject;
  return cbr_current_context() == NULL ? CBR_OK : CBR_E_STALE;
}

static cbr_status try_signal_create(enum subject subject) {
  cbr_signal signal;
  return cbr_signal_create(registry_of(subject), "new", CBR_NONE, &signal);
}

static cbr_status try_connect(enum subject subject) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.function = (cbr_function)other_handler;
  what.context = &scene.other_context;
  return cbr_connect(scene.signals[subject], &what, NULL, &token);
}

static cbr_status try_emit(enum subject subject) {
  return cbr_emit(scene.signals[subject], NULL, NULL);
}

static cbr_disposition let_pass(void *context, void *argument,
                                cbr_token handler, cbr_disposition answer) {
  (void)context, (void)argument, (void)handler;
  return answer;
}

static cbr_status try_emit_combined(enum subject subject) {
  cbr_emission emission = CBR_EMISSION_INIT;
  return cbr_emit_combined(scene.signals[subject], NULL, let_pass, NULL,
                           &emission);
}

static cbr_status try_block(enum subject subject) {
  return cbr_block(scene.signals[subject]);
}

static cbr_status try_unblock(enum subject subject) {
  cbr_status status = cbr_block(scene.signals[subject]);
  return status == CBR_OK ? cbr_unblock(scene.signals[subject]) : status;
}

static cbr_status try_block_handler(enum subject subject) {
  return cbr_block(handle_of(subject));
}

static cbr_status try_unblock_handler(enum subject subject) {
  cbr_status status = cbr_block(handle_of(subject));
  return status == CBR_OK ? cbr_unblock(handle_of(subject)) : status;
}

static cbr_status try_enter_handler(enum subject subject) {
  cbr_call call;
  return left(cbr_enter(handle_of(subject), &call), &call);
}

static cbr_status try_end_signal(enum subject subject) {
  return cbr_invalidate(scene.signals[subject], CBR_REASON_USER);
}

static cbr_status try_wait_for_signal(enum subject subject) {
  return cbr_invalidate_wait(scene.signals[subject], CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_session_interface(enum subject subject) {
  (void)subject;
  EQUAL(CBR_SESSION_METHODS, cbr_session_interface()->count);
  return CBR_OK;
}

static cbr_status try_session_create(enum subject subject) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session;
  options.delegate = scene.spare_delegates[subject];
  return cbr_session_create(registry_of(subject), &options, &session);
}

static cbr_status try_session_finish(enum subject subject) {
  return cbr_session_finish(scene.sessions[subject]);
}

static cbr_status try_session_cancel(enum subject subject) {
  return cbr_session_cancel(scene.sessions[subject]);
}

static cbr_status try_end_session(enum subject subject) {
  return cbr_invalidate(scene.sessions[subject], CBR_REASON_USER);
}

static cbr_status try_wait_for_session(enum subject subject) {
  return cbr_invalidate_wait(scene.sessions[subject], CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_task_begin(enum subject subject) {
  cbr_task task;
  return cbr_task_begin(scene.sessions[subject], NULL, &task);
}

static cbr_status try_task_respond(enum subject subject) {
  return cbr_task_respond(scene.tasks[subject], "response", 8);
}

static cbr_status try_task_data(enum subject subject) {
  return cbr_task_data(scene.tasks[subject], "data", 4);
}

static cbr_status try_task_complete(enum subject subject) {
  return cbr_task_complete(scene.tasks[subject], 0);
}

static cbr_status try_task_cancel(enum subject subject) {
  return cbr_task_cancel(scene.tasks[subject]);
}

static cbr_status try_task_context(enum subject subject) {
  void *context = cbr_task_context(scene.tasks[subject]);
  CHECK(context == NULL || context == &scene);
  return context == NULL ? CBR_E_STALE : CBR_OK;
}

static cbr_status try_task_gathered(enum subject subject) {
  const void *bytes;
  size_t size;
  return cbr_task_gathered(scene.tasks[subject], &bytes, &size);
}

static cbr_status try_end_task(enum subject subject) {
  return cbr_invalidate(scene.tasks[subject], CBR_REASON_USER);
}

static cbr_status try_wait_for_task(enum subject subject) {
  return cbr_invalidate_wait(scene.tasks[subject], CBR_REASON_USER,
                             CBR_FOREVER);
}

static cbr_status try_reply_send(enum subject subject) {
  return cbr_reply_send(scene.replies[subject], CBR_ALLOW, CBR_NONE);
}

static cbr_status try_hand_over(enum subject subject) {
  return cbr_reply_send(scene.replies[subject], CBR_HAND_OVER,
                        scene.spare_delegates[OWN]);
}

/* ------------------------------------------------------------ the table -- */

/* Notes: (1) S stands for "not live". (2) Of a registry the subjects are the
 * scene's own and another one. (3) Own is a lease on the own token. (4) What is
 * being destroyed has ended before. (5) The tokens have the method, or the
 * tag. (6) Own is the call of the callback, another one is of another
 * registry. (7) A slot that holds the own token; for get, enter and invalidate
 * there is one that holds the other. M: it is empty. (8) A thunk of
 * the own token, which belongs to the owner, and one of the other. */
static const struct row table[] = {
    /*                      callback  destroy  owner's end  close  visitor */
    {"is_live", try_is_live,           {"OOO", "SOO", "SOS", "SSS", "OOO"}},
    {"enter", try_enter,               {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"enter_typed", try_enter_typed,   {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"enter_method", try_enter_method, {"EEK", "SEK", "SEK", "SSK", "EEK"}},
    /* (5) */
    {"enter_typed, its tag", try_tagged,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"enter_method, its method", try_method,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"responds, its method", try_has_method,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    /* (6) */
    {"leave", try_leave,               {"OO-", "IO-", "IO-", "IO-", "IO-"}},
    {"CBR_CALL", try_call,             {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"responds", try_responds,         {"EEK", "SEK", "SEK", "SSK", "EEK"}},
    {"lease", try_lease,               {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    /* (3) */
    {"lease_get", try_lease_get,       {"OO-", "SO-", "SO-", "SO-", "OO-"}},
    {"lease_end", try_lease_end,       {"OO-", "AO-", "AO-", "AO-", "OO-"}},
    /* (4) */
    {"invalidate", try_invalidate,     {"DOD", "AOD", "AOA", "AAA", "OOO"}},
    {"invalidate_wait", try_wait,      {"DOD", "DOD", "DOD", "DAD", "OOO"}},
    {"invalidate_wait 0", try_ask,     {"DOD", "DOD", "DOD", "DAD", "OOO"}},
    {"explain", try_explain,           {"OOO", "OOO", "OOO", "OOO", "OOO"}},
    {"impact", try_impact,             {"OOO", "SOO", "SOS", "SSS", "OOO"}},
    {"audit_level", try_level,         {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"audit_note", try_note,           {"OOK", "OOK", "OOK", "OOK", "OOK"}},
    {"register, owned", try_register_owned,
                                       {"KKO", "KKO", "KKY", "KKY", "KKO"}},
    {"owner_create_child", try_owner_create_child,
                                       {"KKO", "KKO", "KKY", "KKY", "KKO"}},
    /* (2) */
    {"register", try_register,         {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"owner_create", try_owner_create, {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"owner_for_object", try_owner_for_object,
                                       {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"object_died", try_object_died,   {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"is_live, registry", try_registry_is_live,
                                       {"OO-", "OO-", "OO-", "SO-", "OO-"}},
    {"statistics", try_statistics,     {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"each_live", try_each_live,       {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"audit_flush", try_flush,         {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"audit_level, registry", try_level_of_registry,
                                       {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"explain, registry", try_explain_registry,
                                       {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"impact, registry", try_impact_of_registry,
                                       {"OO-", "OO-", "OO-", "OO-", "OO-"}},
    {"close", try_close,               {"DO-", "DO-", "DO-", "DO-", "DO-"}},
    {"invalidate, registry", try_end_registry,
                                       {"DO-", "DO-", "DO-", "AO-", "DO-"}},
    {"invalidate_wait, registry", try_wait_for_registry,
                                       {"DO-", "DO-", "DO-", "DO-", "DO-"}},
    {"slot_create", try_slot_create,   {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    /* (7) */
    {"slot_set", try_slot_set,         {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"slot_get", try_slot_get,         {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"slot_enter", try_slot_enter,     {"OO-", "MO-", "MO-", "SS-", "OO-"}},
    {"slot_on_clear", try_slot_on_clear,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"invalidate, slot", try_end_slot, {"OO-", "OO-", "OO-", "AA-", "OO-"}},
    {"queue_create", try_queue_create, {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"post", try_post,                 {"OOK", "SOK", "SOK", "SSS", "OOK"}},
    {"queue_descriptor", try_queue_descriptor,
                                       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"queue_run", try_queue_run,       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"queue_finish", try_queue_finish, {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"queue_statistics", try_queue_statistics,
                                       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"invalidate_wait, queue", try_wait_for_queue,
                                       {"OO-", "OO-", "OO-", "AA-", "OO-"}},
    {"completion_create", try_completion_create,
                                       {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"completion_send", try_completion_send,
                                       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"completion_set_timeout", try_completion_set_timeout,
                                       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    /* (8) */
    {"thunk_create", try_thunk_create, {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"thunk_function", try_thunk_function,
                                       {"OO-", "OO-", "SO-", "SS-", "OO-"}},
    {"a call through a thunk", try_thunk,
                                       {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"invalidate, thunk", try_end_thunk,
                                       {"OO-", "OO-", "AO-", "AA-", "OO-"}},
    {"invalidate_wait, thunk", try_wait_for_thunk,
                                       {"OO-", "OO-", "AO-", "AA-", "OO-"}},
    /* Of no handle. */
    {"current_context", try_current_context,
                                       {"O--", "O--", "O--", "O--", "O--"}},
    {"open and close", try_open,       {"O--", "O--", "O--", "O--", "O--"}},
    {"shared", try_shared,             {"O--", "O--", "O--", "O--", "O--"}},
    {"mark and unwind", try_mark,      {"O--", "O--", "O--", "O--", "O--"}},
    {"texts", try_texts,               {"O--", "O--", "O--", "O--", "O--"}},
};

/* Own is a handler of the own signal, which belongs to the registry. */
static const struct row table_of_signals[] = {
    {"signal_create", try_signal_create,
                                       {"OO-", "OO-", "OO-", "YO-", "OO-"}},
    {"connect", try_connect,           {"OO-", "OO-", "OO-", "YY-", "OO-"}},
    {"emit", try_emit,                 {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"emit_combined", try_emit_combined,
                                       {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"block", try_block,               {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"unblock", try_unblock,           {"OO-", "OO-", "OO-", "SS-", "OO-"}},
    {"block, handler", try_block_handler,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"unblock, handler", try_unblock_handler,
                                       {"OOK", "SOK", "SOK", "SSK", "OOK"}},
    {"enter, handler", try_enter_handler,
                                       {"EEK", "SEK", "SEK", "SSK", "EEK"}},
    {"invalidate, signal", try_end_signal,
                                       {"DO-", "DO-", "DO-", "AA-", "OO-"}},
    {"invalidate_wait, signal", try_wait_for_signal,
                                       {"DO-", "DO-", "DO-", "DA-", "OO-"}},
};

/* Own is the delegate of the own session, and of its task, which waits for the
 * own reply; but where it is called, or is to respond. */
static const struct row table_of_sessions[] = {
    {"session_interface", try_session_interface,
                                       {"O--", "O--", "O--", "O--", "O--"}},
    {"session_create", try_session_create,
                                       {"OO-", "OO-", "OO-", "SO-", "OO-"}},
    {"session_finish", try_session_finish,
                                       {"OO-", "AO-", "AO-", "AA-", "OO-"}},
    {"session_cancel", try_session_cancel,
                                       {"OO-", "AO-", "AO-", "AA-", "OO-"}},
    {"invalidate, session", try_end_session,
                                       {"DO-", "AO-", "AO-", "AA-", "OO-"}},
    {"invalidate_wait, session", try_wait_for_session,
                                       {"DO-", "BO-", "DO-", "DD-", "OO-"}},
    {"task_begin", try_task_begin,     {"OO-", "CO-", "CO-", "CC-", "OO-"}},
    {"task_respond", try_task_respond, {"AO-", "SO-", "SO-", "SS-", "OO-"}},
    {"task_data", try_task_data,       {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"task_complete", try_task_complete,
                                       {"OO-", "AO-", "AO-", "AA-", "OO-"}},
    {"task_cancel", try_task_cancel,   {"OO-", "AO-", "AO-", "AA-", "OO-"}},
    {"task_context", try_task_context, {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"task_gathered", try_task_gathered,
                                       {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"invalidate, task", try_end_task, {"DO-", "AO-", "AO-", "AA-", "OO-"}},
    {"invalidate_wait, task", try_wait_for_task,
                                       {"DO-", "AO-", "AO-", "DD-", "OO-"}},
    {"reply_send", try_reply_send,     {"OO-", "SO-", "SO-", "SS-", "OO-"}},
    {"reply_send, hand over", try_hand_over,
                                       {"OO-", "SO-", "SO-", "SS-", "OO-"}},
};

/* ---------------------------------------------------- running the table -- */

static bool is_about_lease(const struct row *row) {
  return row->attempt == try_lease_get || row->attempt == try_lease_end;
}

static bool has_methods(const struct row *row) {
  return row->attempt == try_method || row->attempt == try_has_method;
}

static bool has_thunks(void) {
  return scene.role == PLAIN && !has_methods(scene.row) &&
         scene.row->attempt != try_tagged;
}

/* Enters the own token as it was registered. */
static cbr_status enter_own(void) {
  cbr_call *call = &scene.own_call;
  if (has_methods(scene.row))
    return cbr_enter_method(scene.own, &interface, 0, call);
  if (scene.row->attempt == try_tagged)
    return cbr_enter_typed(scene.own, TAG, call);
  return cbr_enter(scene.own, call);
}

static void add_delegate(cbr_registry registry, cbr_registration *what,
                         cbr_token *out) {
  const cbr_function table[CBR_SESSION_METHODS] = {
      [CBR_DID_RECEIVE_RESPONSE] = (cbr_function)did_receive_response,
      [CBR_DID_COMPLETE] = (cbr_function)did_complete};
  what->interface = cbr_session_interface();
  what->methods = table;
  EXPECT(CBR_OK, cbr_register(registry, what, out));
}

/* Makes the token, and the signal that it handles or the session whose delegate
 * it is. */
static void add_in_role(cbr_registration *what, cbr_token *out) {
  enum subject subject = out == &scene.own ? OWN : ANOTHER;
  if (scene.role == HANDLER) {
    what->function = subject == OWN ? (cbr_function)own_handler
                                    : (cbr_function)other_handler;
    EXPECT(CBR_OK, cbr_signal_create(scene.registry, "signal", CBR_NONE,
                                     &scene.signals[subject]));
    EXPECT(CBR_OK, cbr_connect(scene.signals[subject], what, NULL, out));
    return;
  }
  add_delegate(scene.registry, what, out);
  cbr_session_options session = CBR_SESSION_OPTIONS_INIT;
  session.delegate = *out;
  EXPECT(CBR_OK, cbr_session_create(scene.registry, &session,
                                    &scene.sessions[subject]));
  cbr_task_options task = CBR_TASK_OPTIONS_INIT;
  task.context = &scene;
  EXPECT(CBR_OK, cbr_task_begin(scene.sessions[subject], &task,
                                &scene.tasks[subject]));
  bool will_be_called =
      scene.place == IN_CALLBACK || scene.place == IN_DESTROY_LEAVING;
  if (scene.row->attempt == try_task_respond ||
      (subject == OWN && will_be_called))
    return;
  EXPECT(CBR_OK, cbr_task_respond(scene.tasks[subject], NULL, 0));
  CHECK(scene.replies[subject] != CBR_NONE);
}

/* What only some rows need: slots that hold the tokens, and delegates of no
 * session. */
static void add_the_rest(void) {
  const cbr_registry registries[] = {scene.registry, scene.another};
  for (enum subject subject = OWN; subject <= ANOTHER; subject++) {
    cbr_registration what = CBR_REGISTRATION_INIT;
    what.label = "spare";
    what.context = &scene.new_context;
    if (scene.role == DELEGATE)
      add_delegate(registries[subject], &what,
                   &scene.spare_delegates[subject]);
    EXPECT(CBR_OK, cbr_slot_create(scene.registry, "slot", CBR_NONE,
                                   &scene.slots[subject]));
    EXPECT(CBR_OK, cbr_slot_set(scene.slots[subject], handle_of(subject)));
    EXPECT(CBR_OK, cbr_queue_create(scene.registry, NULL,
                                    &scene.queues[subject]));
    EXPECT(CBR_OK, create_completion(scene.registry,
                                     &scene.completions[subject]));
    if (!has_thunks()) continue;
    cbr_signature signature = CBR_SIGNATURE_INIT;
    EXPECT(CBR_OK, cbr_thunk_create(scene.registry, handle_of(subject),
                                    &signature, &scene.thunks[subject]));
    scene.called[subject] = cbr_thunk_function(scene.thunks[subject]);
  }
}

/* Registers as the row needs it. */
static void add_to_scene(const char *label, void (*function)(void *),
                         struct counted *counted, cbr_destroy destroy,
                         cbr_owner owner, cbr_token *out) {
  const cbr_function table[] = {(cbr_function)function};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = label;
  what.context = counted;
  what.destroy = destroy;
  what.owner = owner;
  if (scene.role != PLAIN) {
    add_in_role(&what, out);
    return;
  }
  if (has_methods(scene.row)) {
    what.interface = &interface;
    what.methods = table;
  } else {
    what.function = table[0];
    what.type_tag = scene.row->attempt == try_tagged ? TAG : 0;
  }
  EXPECT(CBR_OK, cbr_register(scene.registry, &what, out));
}

/* Enters a call that the attempt leaves. */
static void enter_another(void) {
  cbr_token token;
  EXPECT(CBR_OK, CBR_REGISTER(scene.another, "entered", count_call,
                              &scene.other_context, NULL, CBR_NONE, &token));
  EXPECT(CBR_OK, cbr_enter(token, &scene.other_call));
}

/* Every scene has its level; the costly ones come less often. */
static uint32_t next_level(void) {
  static unsigned scenes;
  switch (scenes++ % 23) {
    case 0: return CBR_LEVEL_CALLS;
    case 11: return CBR_LEVEL_LIFECYCLE;
    default: return CBR_LEVEL_OFF;
  }
}

/* What belongs to what: the own token to the owner, the other to the
 * registry. */
static void make_scene(const struct row *row, enum role role,
                       enum place place, enum subject subject) {
  /* What is gone can only be explained by the history. */
  bool needs_history = row->attempt == try_explain && place == IN_CLOSE;
  uint32_t level = needs_history ? CBR_LEVEL_CALLS : next_level();
  memset(&scene, 0, sizeof scene);
  scene.row = row;
  scene.role = role;
  scene.place = place;
  scene.subject = subject;
  scene.is_open = true;
  scene.registry = open_registry("scene", level);
  scene.another = open_registry("another", next_level());
  scene.owner = add_owner(scene.registry, "owner");
  add_to_scene("own", own_function, &scene.own_context, own_destroy,
               scene.owner, &scene.own);
  add_to_scene("other", count_call, &scene.other_context, count_destroy,
               CBR_NONE, &scene.other);
  add_the_rest();
  if (row->attempt == try_leave && subject == ANOTHER) enter_another();
  if (!is_about_lease(row)) return;
  EXPECT(CBR_OK, cbr_lease(scene.own, &scene.own_lease));
  EXPECT(CBR_OK, cbr_lease(scene.other, &scene.other_lease));
  /* A token is not destroyed while its lease lasts. */
  if (place >= IN_DESTROY && place <= IN_CLOSE)
    EXPECT(CBR_OK, cbr_lease_end(scene.own_lease));
}

/* Has an emission, or a session, call the own token. */
static void have_own_called(void) {
  if (scene.role == HANDLER) {
    cbr_status status = cbr_emit(scene.signals[OWN], NULL, NULL);
    CHECK(status == CBR_OK || status == CBR_STOPPED);
  } else {
    EXPECT(CBR_OK, cbr_task_respond(scene.tasks[OWN], NULL, 0));
  }
}

static void call_own(void) {
  if (scene.role != PLAIN) {
    have_own_called();
    return;
  }
  bool is_left = scene.row->attempt == try_leave && scene.subject == OWN;
  EXPECT(CBR_OK, enter_own());
  ((void (*)(void *))scene.own_call.function)(scene.own_call.context);
  EXPECT(is_left ? CBR_E_INVALID : CBR_OK, cbr_leave(&scene.own_call));
}

static void destroy_at_leave(void) {
  if (scene.role != PLAIN) {
    have_own_called();
    return;
  }
  EXPECT(CBR_OK, enter_own());
  EXPECT(CBR_DEFERRED, cbr_invalidate(scene.own, CBR_REASON_ENDED));
  EQUAL(0, scene.attempts);
  EXPECT(CBR_OK, cbr_leave(&scene.own_call));
}

static void destroy_at_lease_end(void) {
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(scene.own, &lease));
  EXPECT(CBR_PENDING, cbr_invalidate(scene.own, CBR_REASON_ENDED));
  EQUAL(0, scene.attempts);
  EXPECT(CBR_OK, cbr_lease_end(lease));
}

static void destroy_at_close(void) {
  scene.is_open = false;
  /* A lease holds the close up. */
  if (is_about_lease(scene.row)) {
    (void)cbr_registry_close(scene.registry, 0);
  } else {
    close_registry(scene.registry);
  }
}

/* Brings about the attempt in its place. */
static void go_there(void) {
  switch (scene.place) {
    case IN_CALLBACK: call_own(); break;
    case IN_DESTROY:
      EXPECT(CBR_OK, cbr_invalidate(scene.own, CBR_REASON_ENDED));
      break;
    case IN_DESTROY_LEAVING: destroy_at_leave(); break;
    case IN_DESTROY_LEASED: destroy_at_lease_end(); break;
    case IN_OWNERS_END:
      EXPECT(CBR_OK, cbr_invalidate(scene.owner, CBR_REASON_ENDED));
      break;
    case IN_CLOSE: destroy_at_close(); break;
    case IN_EACH_LIVE:
      EXPECT(CBR_OK,
             cbr_registry_each_live(scene.registry, own_visitor, NULL));
      break;
    case IN_IMPACT:
      EXPECT(CBR_OK, cbr_impact(scene.owner, own_visitor, NULL));
      break;
    case PLACES: break;
  }
  EQUAL(1, scene.attempts);
}

/* A live registry goes on working, and so does one that is closed next. */
static void check_registry(cbr_registry registry) {
  cbr_statistics before = statistics_of(registry);
  EXPECT(CBR_OK, try_register_in(registry, CBR_NONE));
  cbr_statistics after = statistics_of(registry);
  EQUAL(before.live_tokens, after.live_tokens);
  EQUAL(before.registered + 1, after.registered);
  EQUAL(before.ended + 1, after.ended);
}

static void end_scene(void) {
  WITHIN("after %s in a %s, on %s", scene.row->name,
         place_names[scene.place], subject_names[scene.subject]);
  cbr_call call;
  EQUAL(0, cbr_mark());
  if (is_about_lease(scene.row)) {
    (void)cbr_lease_end(scene.own_lease);
    (void)cbr_lease_end(scene.other_lease);
  }
  if (scene.is_open) {
    check_registry(scene.registry);
    close_registry(scene.registry);
  }
  if (cbr_is_live(scene.another)) {
    check_registry(scene.another);
    close_registry(scene.another);
  }
  const cbr_handle handles[] = {scene.registry, scene.another, scene.owner,
                                scene.own, scene.other};
  for (int i = 0; i < 5; i++) CHECK(!cbr_is_live(handles[i]));
  EXPECT(CBR_E_CLOSED, cbr_enter(scene.own, &call));
  EXPECT(CBR_E_CLOSED, cbr_enter(scene.other, &call));
  EXPECT(CBR_ALREADY, cbr_registry_close(scene.registry, CBR_FOREVER));
  EXPECT(CBR_ALREADY, cbr_registry_close(scene.another, CBR_FOREVER));
  EQUAL(1, destroyed(&scene.own_context));
  EQUAL(1, destroyed(&scene.other_context));
  EQUAL(scene.registered, destroyed(&scene.new_context));
}

static void try_row(const struct row *row, enum role role) {
  for (enum place place = 0; place < PLACES; place++) {
    for (enum subject subject = 0; subject < SUBJECTS; subject++) {
      if (row->cells[cell_of_place[place]][subject] == '-') continue;
      make_scene(row, role, place, subject);
      go_there();
      end_scene();
    }
  }
}

#define TRY_ROWS(table, role) \
  for (size_t row = 0; row < sizeof(table) / sizeof *(table); row++) \
    try_row(&(table)[row], (role))

static void G12_everyFunctionWorksInsideEverything(void) {
  TRY_ROWS(table, PLAIN);
}

static void G12_everyFunctionOfSignalsWorksInsideEverything(void) {
  TRY_ROWS(table_of_signals, HANDLER);
}

static void G12_everyFunctionOfSessionsWorksInsideEverything(void) {
  TRY_ROWS(table_of_sessions, DELEGATE);
}

/* ------------------------------------------------------------ scenarios -- */

/* Captured data, and what is done with it inside its own callback. */
struct captured {
  struct counted counted;
  cbr_registry registry;
  cbr_token token, next;
  cbr_status status;
  char *data;
};

static void free_captured(void *context) {
  struct captured *captured = context;
  free(captured->data);
  captured->data = NULL;
  count_destroy(&captured->counted);
}

static void capture(struct captured *captured, cbr_registry registry,
                    void (*function)(void *), uint32_t flags) {
  memset(captured, 0, sizeof *captured);
  captured->registry = registry;
  captured->data = strdup("captured");
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "captured";
  what.function = (cbr_function)function;
  what.context = captured;
  what.destroy = free_captured;
  what.flags = flags;
  EXPECT(CBR_OK, cbr_register(registry, &what, &captured->token));
}

static void end_self(void *context) {
  struct captured *captured = context;
  EXPECT(CBR_DEFERRED, cbr_invalidate(captured->token, CBR_REASON_ENDED));
  EQUAL(0, destroyed(&captured->counted));
  CHECK(strcmp(captured->data, "captured") == 0);
}

static void A7_aCallbackMayEndItself(void) {
  cbr_registry registry = open_registry("self", CBR_LEVEL_CALLS);
  struct captured captured;
  capture(&captured, registry, end_self, 0);
  CHECK(calls(captured.token));
  EQUAL(1, destroyed(&captured.counted));
  CHECK(!calls(captured.token));
  close_registry(registry);
}

static void wait_for_self(void *context) {
  struct captured *captured = context;
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(captured->token, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  /* New visits are barred at once, also the caller's own. */
  CHECK(!calls(captured->token));
  EQUAL(0, destroyed(&captured->counted));
  CHECK(strcmp(captured->data, "captured") == 0);
}

static void B1_waitingForOneselfIsDeferred(void) {
  cbr_registry registry = open_registry("self", CBR_LEVEL_CALLS);
  struct captured captured;
  capture(&captured, registry, wait_for_self, 0);
  CHECK(calls(captured.token));
  EQUAL(1, destroyed(&captured.counted));
  close_registry(registry);
}

/* A one-shot has ended before its callback begins. */
static void wait_for_own_one_shot(void *context) {
  struct captured *captured = context;
  EXPECT(CBR_ALREADY, cbr_invalidate(captured->token, CBR_REASON_ENDED));
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(captured->token, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  EQUAL(0, destroyed(&captured->counted));
  CHECK(strcmp(captured->data, "captured") == 0);
}

static void B15_aOneShotNeverWaitsForItself(void) {
  cbr_registry registry = open_registry("one-shot", CBR_LEVEL_CALLS);
  struct captured captured;
  capture(&captured, registry, wait_for_own_one_shot, CBR_ONE_SHOT);
  CHECK(calls(captured.token));
  EQUAL(1, destroyed(&captured.counted));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(captured.token, CBR_REASON_ENDED,
                                          CBR_FOREVER));
  close_registry(registry);
}

static void replace_self(void *context) {
  struct captured *captured = context;
  cbr_token old = captured->token;
  EXPECT(CBR_DEFERRED, cbr_invalidate(old, CBR_REASON_REPLACED));
  captured->next =
      add(captured->registry, "replacement", &captured->counted, false,
          CBR_NONE);
  CHECK(captured->next != old);
  CHECK(calls(captured->next));
  EQUAL(0, destroyed(&captured->counted));
  CHECK(strcmp(captured->data, "captured") == 0);
}

static void A6_aCallbackMayReplaceItself(void) {
  cbr_registry registry = open_registry("replaced", CBR_LEVEL_CALLS);
  struct captured captured;
  capture(&captured, registry, replace_self, 0);
  CHECK(calls(captured.token));
  EQUAL(1, destroyed(&captured.counted));
  CHECK(!cbr_is_live(captured.token));
  CHECK(calls(captured.next));
  close_registry(registry);
}

/* Ends the next one of a walk, and with it frees its memory. */
static void end_next(void *context) {
  struct captured *captured = context;
  EXPECT(CBR_OK, cbr_invalidate_wait(captured->next, CBR_REASON_ENDED,
                                     CBR_FOREVER));
}

static void A11_aCallbackMayEndTheNextOneAndFreeIt(void) {
  cbr_registry registry = open_registry("walk", CBR_LEVEL_CALLS);
  enum { COUNT = 6 };
  struct captured each[COUNT];
  for (int i = 0; i < COUNT; i++) capture(&each[i], registry, end_next, 0);
  for (int i = 0; i + 1 < COUNT; i++) each[i].next = each[i + 1].token;
  int called = 0;
  for (int i = 0; i < COUNT; i++) called += calls(each[i].token);
  EQUAL(COUNT / 2, called);
  for (int i = 0; i < COUNT; i++) EQUAL(i % 2, destroyed(&each[i].counted));
  close_registry(registry);
  for (int i = 0; i < COUNT; i++) EQUAL(1, destroyed(&each[i].counted));
}

/* Registers so many that the table grows under the running callback. */
static void register_many(void *context) {
  struct captured *captured = context;
  for (int i = 0; i < 1000; i++)
    (void)add(captured->registry, "many", &captured->counted, true, CBR_NONE);
  CHECK(strcmp(captured->data, "captured") == 0);
}

static void D14_aCallbackMayRegister(void) {
  cbr_registry registry = open_registry("growing", CBR_LEVEL_CALLS);
  struct captured captured;
  capture(&captured, registry, register_many, 0);
  uint64_t slots = statistics_of(registry).slots;
  CHECK(calls(captured.token));
  CHECK(statistics_of(registry).slots > slots);
  EQUAL(1001, statistics_of(registry).live_tokens);
  close_registry(registry);
  EQUAL(1001, destroyed(&captured.counted));
}

/* The destroy of one of a group waits for another one of the same group,
 * which the same thread would destroy next. */
struct pair {
  struct counted counted;
  cbr_token token;
  struct pair *other;
};

static void wait_for_the_other(void *context) {
  struct pair *pair = context;
  cbr_status status = cbr_invalidate_wait(pair->other->token,
                                          CBR_REASON_ENDED, CBR_FOREVER);
  CHECK(status == CBR_DEFERRED || status == CBR_ALREADY);
  count_destroy(&pair->counted);
}

static void G15_destroysOfOneGroupMayWaitForEachOther(void) {
  cbr_registry registry = open_registry("group", CBR_LEVEL_CALLS);
  for (int round = 0; round < 2; round++) {
    cbr_owner owner = add_owner(registry, "owner");
    struct pair pair[2];
    memset(pair, 0, sizeof pair);
    for (int i = 0; i < 2; i++) {
      pair[i].other = &pair[1 - i];
      EXPECT(CBR_OK, CBR_REGISTER(registry, "pair", count_call, &pair[i],
                                  wait_for_the_other, owner, &pair[i].token));
    }
    if (round == 0) {
      EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
    } else {
      close_registry(registry);
    }
    for (int i = 0; i < 2; i++) EQUAL(1, destroyed(&pair[i].counted));
  }
}

/* One that is inside itself still waits for the others (B4). */
struct crowd {
  struct counted counted;
  cbr_token token;
  struct gate entered, leave;
};

static void *stay_inside(void *argument) {
  struct crowd *crowd = argument;
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(crowd->token, &call));
  gate_open(&crowd->entered);
  gate_pass(&crowd->leave);
  EXPECT(CBR_OK, cbr_leave(&call));
  return NULL;
}

static void B4_ownVisitsAreNotMistakenForOthers(void) {
  cbr_registry registry = open_registry("crowd", CBR_LEVEL_CALLS);
  struct crowd crowd = {{0, 0, pthread_self()}, CBR_NONE, GATE_INIT, GATE_INIT};
  crowd.token = add(registry, "crowd", &crowd.counted, true, CBR_NONE);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, stay_inside, &crowd) == 0);
  gate_pass(&crowd.entered);
  cbr_call call, nested;
  EXPECT(CBR_OK, cbr_enter(crowd.token, &call));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(crowd.token, CBR_REASON_ENDED, 0));
  CHECK(strstr(cbr_last_error(), "\"crowd\"") != NULL);
  /* Barred at once; visits to others go on. */
  EXPECT(CBR_E_STALE, cbr_enter(crowd.token, &nested));
  struct counted context = {0};
  cbr_token another = add(registry, "another", &context, false, CBR_NONE);
  CHECK(calls(another));
  gate_open(&crowd.leave);
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(crowd.token, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  pthread_join(other, NULL);
  EQUAL(0, destroyed(&crowd.counted));
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(1, destroyed(&crowd.counted));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(crowd.token, CBR_REASON_ENDED,
                                          CBR_FOREVER));
  close_registry(registry);
}

/* A visitor that ends what it is shown, and everything else. */
struct walk {
  cbr_registry registry;
  int visited;
};

static cbr_disposition end_everything(void *context, const cbr_item *item) {
  struct walk *walk = context;
  walk->visited++;
  EXPECT(CBR_OK, cbr_invalidate_wait(item->handle, CBR_REASON_ENDED,
                                     CBR_FOREVER));
  /* What is shown stays readable until the visitor returns. */
  CHECK(strcmp(item->label, "visited") == 0);
  if (walk->visited == 3)
    EXPECT(CBR_DEFERRED, cbr_registry_close(walk->registry, CBR_FOREVER));
  return CBR_CONTINUE;
}

static void D16_aVisitorMayEndWhatItIsShownAndClose(void) {
  struct walk walk = {open_registry("walk", CBR_LEVEL_CALLS), 0};
  struct counted context = {0};
  for (int i = 0; i < 5; i++)
    (void)add(walk.registry, "visited", &context, true, CBR_NONE);
  EXPECT(CBR_OK,
         cbr_registry_each_live(walk.registry, end_everything, &walk));
  EQUAL(3, walk.visited);
  EQUAL(5, destroyed(&context));
  EXPECT(CBR_ALREADY, cbr_registry_close(walk.registry, 0));
}

int main(void) {
  TEST(G12_everyFunctionWorksInsideEverything);
  TEST(G12_everyFunctionOfSignalsWorksInsideEverything);
  TEST(G12_everyFunctionOfSessionsWorksInsideEverything);
  TEST(A7_aCallbackMayEndItself);
  TEST(B1_waitingForOneselfIsDeferred);
  TEST(B15_aOneShotNeverWaitsForItself);
  TEST(A6_aCallbackMayReplaceItself);
  TEST(A11_aCallbackMayEndTheNextOneAndFreeIt);
  TEST(D14_aCallbackMayRegister);
  TEST(G15_destroysOfOneGroupMayWaitForEachOther);
  TEST(B4_ownVisitsAreNotMistakenForOthers);
  TEST(D16_aVisitorMayEndWhatItIsShownAndClose);
  cbr_registry shared = cbr_registry_shared();
  close_registry(shared);
  return finish();
}
