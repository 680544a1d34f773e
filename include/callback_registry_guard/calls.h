/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trampoline does, and how user data dies. A part of
 * callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_CALLS_H
#define CALLBACK_REGISTRY_GUARD_CALLS_H

#include "objects.h"

static uint64_t cbr_guard_calls;

/* A call that goes through the guard. function is NULL where it is refused. */
typedef struct cbr_guard_call {
  cbr_call call;
  cbr_status status; /* of entering it; CBR_E_STALE: dead */
  cbr_function function;
  void *data;
  bool is_direct;
} cbr_guard_call;

/* Declares a call that is left when it goes out of scope. */
#define CBR_GUARD_CALL(name) \
  __attribute__((cleanup(cbr_guard_leave))) cbr_guard_call name

CBR_GUARD_UNUSED
static void cbr_guard_leave(cbr_guard_call *call) {
  CBR_GUARD_KEEPS_ERRNO;
  if (call->call.token) (void)cbr_leave(&call->call);
}

/* The function of a token that the registry cannot be asked about; none where
 * it has died before. */
static void cbr_guard_pass(cbr_token token, cbr_guard_call *call) {
  uint32_t slot;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  const cbr_guard_object *object = cbr_guard_holder(token, &slot);
  if (object && !object->cells[slot].is_dead) {
    call->function = object->cells[slot].called;
    call->data = object->cells[slot].data;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* CBR_GUARD_END_AT: takes the object of this call for dead. */
static void cbr_guard_end_object_of(cbr_token token) {
  uint32_t slot;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  const cbr_guard_object *object = cbr_guard_holder(token, &slot);
  cbr_handle ended = object && object->owner ? object->owner : token;
  pthread_rwlock_unlock(&cbr_guard_lock);
  (void)!cbr_invalidate(ended, CBR_REASON_OBJECT_DIED);
}

/* Enters a callback by its token. */
CBR_GUARD_UNUSED
static cbr_guard_call cbr_guard_enter(cbr_token token, uint32_t slot) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_call it = {CBR_CALL_INIT, CBR_OK, NULL, NULL, false};
  if (cbr_guard_end_at && __atomic_add_fetch(&cbr_guard_calls, 1,
                                             __ATOMIC_RELAXED) ==
                              cbr_guard_end_at)
    cbr_guard_end_object_of(token);
  it.status = cbr_enter_typed(token, slot + 1, &it.call);
  if (it.status == CBR_OK) {
    it.function = it.call.function;
    it.data = it.call.context;
  } else if (it.status == CBR_E_FORKED || it.status == CBR_E_NOMEM) {
    cbr_guard_pass(token, &it);
  }
  return it;
}

/* Enters a callback by its object and slot. */
CBR_GUARD_UNUSED
static cbr_guard_call cbr_guard_enter_object(const void *address,
                                             uint32_t slot) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_cell cell = {0};
  bool is_direct = false;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(address);
  if (!object || !object->cells[slot].called) {
    if (cbr_guard_pending) object = cbr_guard_pending;
  }
  if (object) {
    cell = object->cells[slot];
    is_direct = object->is_direct;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
  cbr_guard_call it = {CBR_CALL_INIT, CBR_OK, NULL, NULL, false};
  if (cell.token) {
    it = cbr_guard_enter(cell.token, slot);
  } else if (cell.called) { /* it could not be registered */
    it.function = cell.called;
    it.data = cell.data;
  } else {
    cbr_guard_say("a call is refused", "its object is not known");
  }
  it.is_direct = is_direct;
  return it;
}

/* For a callback that may jump out (longjmp) instead of returning: it is
 * checked and then called, since a call that is never left would keep its
 * token for ever. */
CBR_GUARD_UNUSED
static void cbr_guard_leave_early(cbr_guard_call *call) {
  cbr_guard_leave(call);
  call->call.token = CBR_NONE;
}

/* Where a guard in C has callbacks of its own: one with this user data. */
CBR_GUARD_UNUSED
static cbr_token (*cbr_guard_more_with_data)(const void *data);

/* One callback with this user data; CBR_NONE where there is none. */
static cbr_token cbr_guard_with_data(const void *data) {
  cbr_token token = CBR_NONE;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  for (uint32_t each = 0; !token && each < CBR_GUARD_BUCKETS; each++)
    for (cbr_guard_object *object = cbr_guard_objects[each]; object && !token;
         object = object->next)
      for (uint32_t slot = 0; slot < CBR_GUARD_SLOTS; slot++)
        if (object->cells[slot].data == data &&
            cbr_is_live(object->cells[slot].token))
          token = object->cells[slot].token;
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (!token && cbr_guard_more_with_data)
    token = cbr_guard_more_with_data(data);
  return token;
}

/* Notes that user data is about to die: for what is set or copied with it
 * later, and for forked children. */
static void cbr_guard_mark_dead(const void *data) {
  pthread_rwlock_wrlock(&cbr_guard_lock);
  for (uint32_t each = 0; each < CBR_GUARD_BUCKETS; each++)
    for (cbr_guard_object *object = cbr_guard_objects[each]; object;
         object = object->next)
      for (uint32_t slot = 0; slot < CBR_GUARD_SLOTS; slot++)
        if (object->cells[slot].data == data)
          object->cells[slot].is_dead = true;
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* Ends all callbacks whose user data is about to die, of whatever objects.
 *   waits  until no thread is inside of one any more */
CBR_GUARD_UNUSED
static void cbr_guard_data_dies(const void *data, bool waits) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_token token;
  cbr_guard_mark_dead(data);
  while ((token = cbr_guard_with_data(data)) != CBR_NONE) {
    cbr_guard_is_inside = true;
    if (waits)
      (void)!cbr_invalidate_wait(token, CBR_REASON_OBJECT_DIED, CBR_FOREVER);
    else
      (void)!cbr_invalidate(token, CBR_REASON_OBJECT_DIED);
    cbr_guard_is_inside = false;
  }
}

#endif
