/* SPDX-License-Identifier: Apache-2.0
 *
 * Setters of options, one for a function and one for its data, and copies of
 * objects. A part of callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_OPTIONS_H
#define CALLBACK_REGISTRY_GUARD_OPTIONS_H

#include "setting.h"

#include <stdarg.h>

/* A callback that is set by two options, one for the function and one for its
 * data. */
typedef struct cbr_guard_option {
  long function;
  long data;
  uint32_t slot;
  int32_t otherwise;       /* the slot whose function is called for data
                              without a function; -1: none */
  cbr_function trampoline;
  void *(*without)(void);  /* what a function is given without data; NULL:
                              nothing */
} cbr_guard_option;

typedef struct cbr_guard_options {
  const char *setter;
  const cbr_guard_option *pairs;
  uint32_t count;
  int (*apply)(void *object, long option, void *value);
  bool (*is_success)(int result);
} cbr_guard_options;

CBR_GUARD_UNUSED
static const cbr_guard_option *cbr_guard_pair(const cbr_guard_options *all,
                                              long option) {
  for (uint32_t each = 0; each < all->count; each++)
    if (all->pairs[each].function == option || all->pairs[each].data == option)
      return &all->pairs[each];
  return NULL;
}

/* A callback as the program has set it so far; with the function of another
 * one that would be called in its place. */
static cbr_guard_cell cbr_guard_now(const void *address,
                                    const cbr_guard_option *pair,
                                    cbr_function *otherwise) {
  cbr_guard_cell cell = {0};
  *otherwise = NULL;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(address);
  if (object && !object->is_dying) {
    cell = object->cells[pair->slot];
    if (pair->otherwise >= 0)
      *otherwise = object->cells[pair->otherwise].function;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (!cell.has_data) cell.data = pair->without ? pair->without() : NULL;
  return cell;
}

/* Tells the library of one pair as it shall be from now on. */
static int cbr_guard_apply(const cbr_guard_options *all,
                           const cbr_guard_option *pair, void *object,
                           cbr_guard_cell made, cbr_function otherwise,
                           bool is_data, const void *caller) {
  cbr_guard_set set;
  int result;
  made.called = made.function;
  made.token = CBR_NONE;
  if (!made.called && made.has_data && made.data) made.called = otherwise;
  cbr_guard_begin(&set, object, all->setter, caller);
  cbr_token token = cbr_guard_put_cell(&set, pair->slot, made);
  void *function = (void *)(uintptr_t)made.function;
  void *data = made.data;
  if (token) {
    function = (void *)(uintptr_t)pair->trampoline;
    data = cbr_cookie(token);
  }
  bool was_guarded = set.parts[0].former.token != CBR_NONE;
  if (token || was_guarded) {
    result = all->apply(object, pair->function, function);
    if (all->is_success(result)) result = all->apply(object, pair->data, data);
  } else {
    result = all->apply(object, is_data ? pair->data : pair->function,
                        is_data ? data : function);
  }
  cbr_guard_finish(&set, object, all->is_success(result));
  return result;
}

/* Which of the pairs that share a pair's data has a function: the first of
 * them in the table, which the library prefers. */
static const cbr_guard_option *cbr_guard_preferred(
    const cbr_guard_options *all, const cbr_guard_option *pair,
    const void *address) {
  cbr_function otherwise;
  for (uint32_t each = 0; each < all->count; each++)
    if (all->pairs[each].data == pair->data &&
        cbr_guard_now(address, &all->pairs[each], &otherwise).function)
      return &all->pairs[each];
  return pair;
}

/* Notes the data of pairs that share it, beside the one that is applied. */
static void cbr_guard_share_data(const cbr_guard_options *all,
                                 const cbr_guard_option *pair,
                                 const void *address, void *data) {
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(address);
  for (uint32_t each = 0; object && each < all->count; each++) {
    const cbr_guard_option *other = &all->pairs[each];
    if (other == pair || other->data != pair->data) continue;
    object->cells[other->slot].data = data;
    object->cells[other->slot].has_data = true;
    object->cells[other->slot].is_dead = false;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* Tells the library of what is called for data without a function, where that
 * function has changed. */
static void cbr_guard_follow(const cbr_guard_options *all,
                             const cbr_guard_option *pair, void *object,
                             const void *caller) {
  for (uint32_t each = 0; each < all->count; each++) {
    const cbr_guard_option *other = &all->pairs[each];
    cbr_function otherwise;
    if (other->otherwise != (int32_t)pair->slot) continue;
    cbr_guard_cell made = cbr_guard_now(object, other, &otherwise);
    if (!made.function && made.has_data)
      (void)cbr_guard_apply(all, other, object, made, otherwise, true, caller);
  }
}

/* Sets one option of a pair, and what depends on it. */
CBR_GUARD_UNUSED
static int cbr_guard_set_option(const cbr_guard_options *all, void *object,
                                long option, void *value, const void *caller) {
  const cbr_guard_option *pair = cbr_guard_pair(all, option);
  const cbr_guard_option *preferred = cbr_guard_preferred(all, pair, object);
  bool is_data = pair->data == option;
  cbr_function otherwise;
  if (is_data) {
    pair = preferred;
  } else if (preferred < pair) {
    return all->apply(object, option, value);
  }
  cbr_guard_cell made = cbr_guard_now(object, pair, &otherwise);
  if (is_data) {
    made.data = value;
    made.has_data = true;
    made.is_dead = false;
  } else {
    made.function = (cbr_function)(uintptr_t)value;
  }
  int result =
      cbr_guard_apply(all, pair, object, made, otherwise, is_data, caller);
  if (is_data) cbr_guard_share_data(all, pair, object, value);
  if (!is_data) cbr_guard_follow(all, pair, object, caller);
  return result;
}

/* What the copy of an object has: the same functions, with tokens of its own.
 *   all  the options of the library; NULL: it has copied its functions itself,
 *        and the trampolines find the copy's tokens */
CBR_GUARD_UNUSED
static void cbr_guard_copy(const void *from, void *to, const char *setter,
                           const void *caller, const cbr_guard_options *all) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_cell cells[CBR_GUARD_SLOTS];
  bool is_direct = false;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(from);
  bool is_known = object && !object->is_dying;
  if (is_known) {
    memcpy(cells, object->cells, sizeof(cells));
    is_direct = object->is_direct;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (!is_known || !to) return;
  for (uint32_t each = 0; all && each < all->count; each++) {
    const cbr_guard_option *pair = &all->pairs[each];
    const cbr_guard_cell *cell = &cells[pair->slot];
    cbr_function otherwise =
        pair->otherwise < 0 ? NULL : cells[pair->otherwise].function;
    if (cell->function || cell->has_data)
      (void)cbr_guard_apply(all, pair, to, *cell, otherwise, true, caller);
  }
  for (uint32_t slot = 0; !all && slot < CBR_GUARD_SLOTS; slot++) {
    cbr_guard_set set;
    if (!cells[slot].called) continue;
    cbr_guard_begin(&set, to, setter, caller);
    (void)cbr_guard_put_cell(&set, slot, cells[slot]);
    cbr_guard_finish(&set, to, true);
  }
  if (all || !is_direct) return;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  object = cbr_guard_find(to);
  if (object) object->is_direct = true;
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* Notes that the program wants to be given the object itself. */
CBR_GUARD_UNUSED
static void cbr_guard_direct(const void *address) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_is_inside = true;
  (void)cbr_guard_know(address);
  cbr_guard_is_inside = false;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(address);
  if (object) object->is_direct = true;
  pthread_rwlock_unlock(&cbr_guard_lock);
}

#endif
