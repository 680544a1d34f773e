/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of objects that were given callbacks. A part of
 * callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_OBJECTS_H
#define CALLBACK_REGISTRY_GUARD_OBJECTS_H

#include "registry.h"

/* One callback of one object. */
typedef struct cbr_guard_cell {
  cbr_function function; /* what the program set */
  cbr_function called;   /* what is registered; NULL: nothing */
  void *data;            /* what the program's function is given */
  cbr_token token;
  uint32_t setters; /* that are setting it at this moment */
  uint32_t sets;    /* that have begun */
  bool has_data;    /* the program has set it */
  bool is_dead;     /* its data has died, or its object */
} cbr_guard_cell;

/* An object that was given callbacks. Dead ones stay for a while, so that a
 * late call can be told from whom it came. */
typedef struct cbr_guard_object {
  struct cbr_guard_object *next;  /* of the same bucket, the newest first */
  struct cbr_guard_object *later; /* dead ones, the oldest first */
  const void *address;
  cbr_owner owner;
  bool is_dying;
  bool is_direct; /* the program asked to be given the object itself */
  cbr_guard_cell cells[CBR_GUARD_SLOTS];
} cbr_guard_object;

enum { CBR_GUARD_BUCKETS = 1024, CBR_GUARD_DEAD = 1024 };

/* Protected by the lock. */
static cbr_guard_object *cbr_guard_objects[CBR_GUARD_BUCKETS];
static cbr_guard_object *cbr_guard_first_dead;
static cbr_guard_object *cbr_guard_last_dead;
static uint32_t cbr_guard_dead;

/* What is being created on this thread: the library may call back before it
 * has said which object that is. */
static __thread cbr_guard_object *cbr_guard_pending;

static cbr_guard_object **cbr_guard_bucket(const void *address) {
  uint64_t hash = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u;
  return &cbr_guard_objects[hash >> 54];
}

/* The newest object at an address, dead ones included. Under the lock. */
static cbr_guard_object *cbr_guard_find(const void *address) {
  cbr_guard_object *object = *cbr_guard_bucket(address);
  while (object && object->address != address) object = object->next;
  return object;
}

/* The object and slot of a token; NULL where it is not in the table. Under the
 * lock. */
CBR_GUARD_UNUSED
static const cbr_guard_object *cbr_guard_holder(cbr_token token,
                                                uint32_t *slot) {
  for (uint32_t each = 0; each < CBR_GUARD_BUCKETS; each++)
    for (const cbr_guard_object *object = cbr_guard_objects[each]; object;
         object = object->next)
      for (*slot = 0; *slot < CBR_GUARD_SLOTS; ++*slot)
        if (object->cells[*slot].token == token) return object;
  return NULL;
}

static void cbr_guard_link(cbr_guard_object *object, const void *address) {
  cbr_guard_object **bucket = cbr_guard_bucket(address);
  object->address = address;
  object->next = *bucket;
  *bucket = object;
}

static void cbr_guard_unlink(cbr_guard_object *object) {
  cbr_guard_object **at = cbr_guard_bucket(object->address);
  while (*at != object) at = &(*at)->next;
  *at = object->next;
}

/* Keeps a dead object for late calls, and forgets the oldest one. */
static void cbr_guard_bury(cbr_guard_object *object) {
  for (uint32_t slot = 0; slot < CBR_GUARD_SLOTS; slot++)
    object->cells[slot].is_dead = true;
  if (cbr_guard_last_dead)
    cbr_guard_last_dead->later = object;
  else
    cbr_guard_first_dead = object;
  cbr_guard_last_dead = object;
  if (++cbr_guard_dead <= CBR_GUARD_DEAD) return;
  cbr_guard_object *oldest = cbr_guard_first_dead;
  cbr_guard_first_dead = oldest->later;
  cbr_guard_dead--;
  cbr_guard_unlink(oldest);
  free(oldest);
}

static cbr_owner cbr_guard_owner(const void *address) {
  char label[64];
  cbr_owner owner = CBR_NONE;
  snprintf(label, sizeof(label), CBR_GUARD_LIBRARY " %p", address);
  (void)!cbr_owner_create(
      __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE), label, &owner);
  return owner;
}

static cbr_guard_object *cbr_guard_create(const void *address) {
  cbr_guard_object *object = calloc(1, sizeof(*object));
  if (object) object->owner = cbr_guard_owner(address);
  return object;
}

/* Sees to it that an object is in the table. */
static bool cbr_guard_know(const void *address) {
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *known = cbr_guard_find(address);
  bool is_known = known && !known->is_dying;
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (is_known) return true;
  cbr_guard_object *object = cbr_guard_create(address);
  if (!object) return false;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  known = cbr_guard_find(address);
  is_known = known && !known->is_dying;
  if (!is_known) cbr_guard_link(object, address);
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (!is_known) return true;
  (void)!cbr_invalidate(object->owner, CBR_REASON_REPLACED);
  free(object);
  return true;
}

/* Says that an object is about to die. While the library is at it, its
 * callbacks go on as without the guard; a new object that is made at the same
 * address meanwhile is another one. */
CBR_GUARD_UNUSED
static cbr_guard_object *cbr_guard_dies(const void *address) {
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_find(address);
  if (object && object->is_dying) object = NULL;
  if (object) object->is_dying = true;
  pthread_rwlock_unlock(&cbr_guard_lock);
  return object;
}

/* Ends all callbacks of an object that has died; has it live on where it has
 * not. */
CBR_GUARD_UNUSED
static void cbr_guard_died(cbr_guard_object *object, bool is_dead,
                           cbr_reason reason) {
  CBR_GUARD_KEEPS_ERRNO;
  if (!object) return;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_owner owner = object->owner;
  object->is_dying = is_dead;
  if (is_dead) cbr_guard_bury(object);
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (!is_dead) return;
  cbr_guard_is_inside = true;
  (void)!cbr_invalidate(owner, reason);
  cbr_guard_is_inside = false;
}

#endif
