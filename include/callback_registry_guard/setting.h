/* SPDX-License-Identifier: Apache-2.0
 *
 * What a setter does. A part of callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_SETTING_H
#define CALLBACK_REGISTRY_GUARD_SETTING_H

#include "objects.h"

enum { CBR_GUARD_PARTS = 4 }; /* callbacks that one setter takes */

typedef struct cbr_guard_part {
  uint32_t slot;
  cbr_guard_cell former;
  cbr_guard_cell made;
  bool is_alone;
} cbr_guard_part;

/* One call of a setter. */
typedef struct cbr_guard_set {
  const void *address;      /* NULL: what is being created */
  cbr_guard_object *created;
  cbr_guard_object *former_pending;
  const char *setter;
  const void *caller;
  bool is_known; /* false: no memory for it, and all goes through */
  uint32_t count;
  cbr_guard_part parts[CBR_GUARD_PARTS];
} cbr_guard_set;

/* Begins to set callbacks of the object at address; of one that the setter
 * creates, where that is NULL. */
CBR_GUARD_UNUSED
static void cbr_guard_begin(cbr_guard_set *set, const void *address,
                            const char *setter, const void *caller) {
  CBR_GUARD_KEEPS_ERRNO;
  memset(set, 0, sizeof(*set));
  set->address = address;
  set->setter = setter;
  set->caller = caller;
  cbr_guard_is_inside = true;
  if (address) {
    set->is_known = cbr_guard_know(address);
  } else {
    set->created = cbr_guard_create(NULL);
    set->is_known = set->created != NULL;
    set->former_pending = cbr_guard_pending;
    cbr_guard_pending = set->created;
  }
  if (!set->is_known)
    cbr_guard_say("a callback is not guarded", "there is no memory");
  cbr_guard_is_inside = false;
}

/* "curl+0x1234", or "main.so(start+0x12)" where that is known. */
static void cbr_guard_site(const void *caller, char *text, size_t size) {
  Dl_info info;
  const char *name;
  if (!dladdr(caller, &info) || !info.dli_fname) {
    snprintf(text, size, "%p", caller);
    return;
  }
  name = strrchr(info.dli_fname, '/');
  name = name ? name + 1 : info.dli_fname;
  if (info.dli_sname)
    snprintf(text, size, "%.200s(%.200s+%#zx)", name, info.dli_sname,
             (size_t)((const char *)caller - (const char *)info.dli_saddr));
  else
    snprintf(text, size, "%.200s+%#zx", name,
             (size_t)((const char *)caller - (const char *)info.dli_fbase));
}

/* The object of a set. Under the lock. */
static cbr_guard_object *cbr_guard_of(const cbr_guard_set *set) {
  cbr_guard_object *object;
  if (!set->address) return set->created;
  object = cbr_guard_find(set->address);
  return object && !object->is_dying ? object : NULL;
}

/* The owner of what is set; a new one where it could not be made before, has
 * ended, or was inherited through fork. CBR_NONE: there is no memory. */
static cbr_owner cbr_guard_owner_of(const cbr_guard_set *set) {
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_of(set);
  cbr_owner owner = object ? object->owner : CBR_NONE;
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (cbr_is_live(owner)) return owner;
  owner = cbr_guard_owner(set->address);
  pthread_rwlock_wrlock(&cbr_guard_lock);
  object = cbr_guard_of(set);
  if (object) object->owner = owner;
  pthread_rwlock_unlock(&cbr_guard_lock);
  return owner;
}

/* Registers a callback; CBR_NONE where that is not possible. */
static cbr_token cbr_guard_register(const cbr_guard_set *set, uint32_t slot,
                                    cbr_function function, void *data) {
  static const char *const names[] = {CBR_GUARD_NAMES};
  char site[512];
  char label[256];
  cbr_token token = CBR_NONE;
  cbr_registry registry = cbr_guard_current_registry();
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_guard_site(set->caller, site, sizeof(site));
  snprintf(label, sizeof(label), *names[slot] ? "%s %s" : "%s", set->setter,
           names[slot]);
  what.label = label;
  what.function = function;
  what.context = data;
  what.file = site;
  what.line = 0;
  what.type_tag = slot + 1; /* of another signature: refused */
  what.owner = cbr_guard_owner_of(set);
  cbr_status status =
      what.owner ? cbr_register(registry, &what, &token) : CBR_E_NOMEM;
  if (status != CBR_OK)
    cbr_guard_say("a callback is not guarded", cbr_last_error());
  return token;
}

/* Gives a callback of the object another function; NULL: none. Returns its
 * token, or CBR_NONE where the function goes to the library as it is. */
static cbr_token cbr_guard_put_cell(cbr_guard_set *set, uint32_t slot,
                                    cbr_guard_cell made) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_part *part = &set->parts[set->count++];
  cbr_guard_is_inside = true;
  if (made.called && set->is_known)
    made.token = cbr_guard_register(set, slot, made.called, made.data);
  if (made.token && made.is_dead) /* data that died before it was set */
    (void)!cbr_invalidate(made.token, CBR_REASON_OBJECT_DIED);
  cbr_guard_is_inside = false;
  part->slot = slot;
  part->made = made;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_of(set);
  if (object) {
    cbr_guard_cell *cell = &object->cells[slot];
    part->former = *cell;
    part->is_alone = cell->setters == 0;
    part->made.setters = cell->setters + 1;
    part->made.sets = cell->sets + 1;
    *cell = part->made;
  }
  pthread_rwlock_unlock(&cbr_guard_lock);
  return made.token;
}

CBR_GUARD_UNUSED
static cbr_token cbr_guard_put(cbr_guard_set *set, uint32_t slot,
                               cbr_function function, void *data) {
  cbr_guard_cell made = {.function = function,
                         .called = function,
                         .data = data,
                         .has_data = true};
  return cbr_guard_put_cell(set, slot, made);
}

/* Registers a callback of which an object may have any number, and that
 * nothing replaces. Its slot is 0. Whoever calls this ends it. */
CBR_GUARD_UNUSED
static cbr_token cbr_guard_connect(const void *address, const char *setter,
                                   const void *caller, cbr_function function,
                                   void *data) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_guard_set set;
  cbr_guard_begin(&set, address, setter, caller);
  cbr_guard_is_inside = true;
  cbr_token token = cbr_guard_register(&set, 0, function, data);
  cbr_guard_is_inside = false;
  return token;
}

/* What the library's answer is to the program, where it is the former user
 * data: the token goes back to what the program had given. */
CBR_GUARD_UNUSED
static void *cbr_guard_former(const cbr_guard_set *set, void *result) {
  for (uint32_t each = 0; each < set->count; each++) {
    const cbr_guard_cell *former = &set->parts[each].former;
    if (former->token && result == cbr_cookie(former->token))
      return former->data;
  }
  return result;
}

/* Which token of a part has ended: the former one, the new one where the
 * setter failed, or none where another thread has been setting it, too. */
static cbr_token cbr_guard_settle(cbr_guard_part *part,
                                  cbr_guard_object *object, bool is_success) {
  if (!object) return part->made.token;
  cbr_guard_cell *cell = &object->cells[part->slot];
  bool is_last = cell->sets == part->made.sets;
  uint32_t setters = --cell->setters;
  uint32_t sets = cell->sets;
  if (is_success) return part->is_alone && is_last ? part->former.token : 0;
  if (is_last) {
    *cell = part->former;
    cell->setters = setters;
    cell->sets = sets;
  }
  return part->made.token;
}

/* Ends a setting.
 *   address     the object, which the setter may have created; NULL: none
 *   is_success  whether the library has taken the callbacks */
CBR_GUARD_UNUSED
static void cbr_guard_finish(cbr_guard_set *set, const void *address,
                             bool is_success) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_token ended[CBR_GUARD_PARTS] = {0};
  cbr_guard_object *created = set->created;
  if (!set->address) cbr_guard_pending = set->former_pending;
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_of(set);
  for (uint32_t each = 0; each < set->count; each++)
    ended[each] = cbr_guard_settle(&set->parts[each], object, is_success);
  pthread_rwlock_unlock(&cbr_guard_lock);
  if (created && address && is_success) {
    /* Whoever was there before has died unnoticed. */
    cbr_guard_died(cbr_guard_dies(address), true, CBR_REASON_OBJECT_DIED);
    pthread_rwlock_wrlock(&cbr_guard_lock);
    cbr_guard_link(created, address);
    pthread_rwlock_unlock(&cbr_guard_lock);
  }
  cbr_guard_is_inside = true;
  for (uint32_t each = 0; each < set->count; each++)
    if (ended[each]) (void)!cbr_invalidate(ended[each], CBR_REASON_REPLACED);
  if (created && !(address && is_success)) {
    (void)!cbr_invalidate(created->owner, CBR_REASON_ENDED);
    free(created);
  }
  cbr_guard_is_inside = false;
}

#endif
