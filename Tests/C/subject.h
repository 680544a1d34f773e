/* SPDX-License-Identifier: Apache-2.0
 *
 * A context that knows when it is misused: its memory is poisoned and freed
 * by destroy, and its life is counted beside it.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "gates.h"

typedef struct life {
  _Atomic int running;   /* calls between enter and leave */
  _Atomic int calls;
  _Atomic int destroyed;
  void (*on_call)(void *);    /* what else a call does; may be NULL */
  void (*on_destroy)(void *); /* what else destroy does; may be NULL */
  void *argument;             /* of both */
} life;

typedef struct subject {
  uint64_t mark;
  life *life;
} subject;

static const uint64_t subject_alive = 0xA11FEA11FEA11FEu;
static const uint64_t subject_dead = 0xDEADDEADDEADDEADu;

/* The callback. */
static inline void subject_call(void *context) {
  subject *self = context;
  CHECK(self->mark == subject_alive);
  life *life = self->life;
  CHECK(atomic_load(&life->destroyed) == 0);
  atomic_fetch_add(&life->calls, 1);
  if (life->on_call) life->on_call(life->argument);
  CHECK(self->mark == subject_alive);
  reach(IN_CALLBACK, (uintptr_t)life);
}

/* The destroy (G7): once, and not under a running call. */
static inline void subject_destroy(void *context) {
  subject *self = context;
  life *life = self->life;
  CHECK(self->mark == subject_alive);
  EQUAL(0, atomic_load(&life->running));
  EQUAL(0, atomic_fetch_add(&life->destroyed, 1));
  self->mark = subject_dead;
  free(self);
  if (life->on_destroy) life->on_destroy(life->argument);
  reach(IN_DESTROY, (uintptr_t)life);
}

static inline subject *subject_make(life *life) {
  subject *self = malloc(sizeof *self);
  if (!self) stuck_("a test", "has no memory");
  *self = (subject){subject_alive, life};
  return self;
}

/* Registers a subject with destroy; when that fails, nothing is taken. */
static inline cbr_status subject_register_flags(cbr_registry registry,
                                                life *life, cbr_owner owner,
                                                uint32_t flags,
                                                cbr_token *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "subject";
  what.function = (cbr_function)subject_call;
  what.context = subject_make(life);
  what.destroy = subject_destroy;
  what.owner = owner;
  what.flags = flags;
  cbr_status status = cbr_register(registry, &what, out);
  if (status != CBR_OK) {
    EQUAL(0, atomic_load(&life->destroyed));
    free(what.context);
  }
  return status;
}

static inline cbr_status subject_register(cbr_registry registry, life *life,
                                          cbr_owner owner, cbr_token *out) {
  return subject_register_flags(registry, life, owner, 0, out);
}

/* Enters, and counts the call as running. */
static inline cbr_status subject_enter(cbr_token token, life *life,
                                       cbr_call *call) {
  cbr_status status = cbr_enter(token, call);
  if (status == CBR_OK) {
    atomic_fetch_add(&life->running, 1);
    CHECK(call->function == (cbr_function)subject_call);
  } else {
    CHECK(call->function == NULL && call->context == NULL);
  }
  return status;
}

static inline void subject_run(cbr_call *call) {
  ((void (*)(void *))call->function)(call->context);
}

static inline cbr_status subject_leave(cbr_call *call, life *life) {
  atomic_fetch_sub(&life->running, 1);
  return cbr_leave(call);
}

/* Enter, call and leave. */
static inline cbr_status subject_visit(cbr_token token, life *life) {
  cbr_call call;
  cbr_status status = subject_enter(token, life, &call);
  if (status != CBR_OK) return status;
  subject_run(&call);
  return subject_leave(&call, life);
}

/* ------------------------------------------------- what workers often do -- */

/* Ending something, and what was answered. */
typedef struct ending {
  cbr_handle handle;
  uint64_t timeout; /* of wait_for */
  cbr_status status;
  char sentence[1024]; /* cbr_last_error, when it failed */
} ending;

#define ENDING(handle) { (handle), CBR_FOREVER, CBR_E_USER, "" }

static inline void note_ending_(ending *it, cbr_status status) {
  it->status = status;
  if (status != CBR_OK)
    snprintf(it->sentence, sizeof it->sentence, "%s", cbr_last_error());
}

static inline void end_it(void *argument) {
  ending *it = argument;
  note_ending_(it, cbr_invalidate(it->handle, CBR_REASON_ENDED));
}

static inline void wait_for(void *argument) {
  ending *it = argument;
  note_ending_(it, cbr_invalidate_wait(it->handle, CBR_REASON_ENDED,
                                       it->timeout));
}

static inline void close_it(void *argument) {
  ending *it = argument;
  note_ending_(it, cbr_registry_close(it->handle, it->timeout));
}

/* A call of a subject, and what was answered. */
typedef struct visit {
  cbr_token token;
  life *life;
  cbr_status status;
} visit;

#define VISIT(token, life) { (token), (life), CBR_E_USER }

static inline void visit_it(void *argument) {
  visit *it = argument;
  it->status = subject_visit(it->token, it->life);
}

/* Starts a call of a subject that stops inside the callback. */
static inline void start_inside(worker *caller, visit *call, gate *inside) {
  *inside = (gate)GATE(IN_CALLBACK, (uintptr_t)call->life, caller);
  close_gate(inside);
  start(caller, "caller", visit_it, call);
  await_gate(inside);
}

#endif
