/* SPDX-License-Identifier: Apache-2.0
 *
 * callback_registry_guard.h - what the C files of "cbr guard" are made with.
 *
 * A guard stands between a program and a library that takes callbacks. It
 * replaces the library's setters, registers what the program sets, and gives
 * the library a function of its own, a trampoline, which enters the token,
 * calls the program's function and leaves. Once the object that was given the
 * callback is dead, or the callback was replaced, a late call gets a default
 * answer, and is recorded.
 *
 * Define these before including it, in one C file:
 *   CBR_GUARD_LIBRARY   the name for labels and messages, "libcurl"
 *   CBR_GUARD_SONAME    where functions are looked for that are not in the
 *                       program yet, "libcurl.so.4"
 *   CBR_GUARD_SLOTS     how many different callbacks an object can have
 *   CBR_GUARD_NAMES     their names, "write", "header"
 *   CBR_GUARD_WRAP      for an object file linked with -Wl,--wrap=...; without
 *                       it the file is for a library named by LD_PRELOAD
 *   CBR_GUARD_OWN       1 where the registry itself uses the library, and its
 *                       own calls must be left alone
 *
 * The environment:
 *   CBR_GUARD=off       nothing is guarded: every call goes straight through
 *   CBR_GUARD_HISTORY   the history's file; none: in memory
 *   CBR_GUARD_LEVEL     off, lifecycle or calls (the default)
 *   CBR_GUARD_END_AT    for tests: the object of the so many-th guarded call
 *                       is taken for dead from then on
 * What cannot be guarded goes through, too, and one line on stderr says why.
 *
 * Threads.  A trampoline runs on any thread. Two threads may set the same
 *   callback of one object at a time, if the library allows that: both stay
 *   live until it is set again or the object dies.
 * Locks.  One, for the table of objects; it is not held while the library,
 *   the registry or the program's functions are called.
 * fork.  In the child what was set before goes through unguarded, and what is
 *   set there is guarded anew.
 * Since.  0.1.0. Documentation/Guarding.md has the descriptions that the
 *   generator reads.
 */
#ifndef CALLBACK_REGISTRY_GUARD_H
#define CALLBACK_REGISTRY_GUARD_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include: RTLD_NEXT is one of its"
#endif

#include "callback_registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef CBR_GUARD_OWN
#define CBR_GUARD_OWN 0
#endif

/* Not every guard uses all of it. */
#define CBR_GUARD_UNUSED __attribute__((unused))

/* For functions after which errno is what it was: a program may look at it
 * after any call of the library's. */
#define CBR_GUARD_KEEPS_ERRNO \
  __attribute__((cleanup(cbr_guard_restore_errno))) int guard_errno = errno

static inline void cbr_guard_restore_errno(const int *kept) { errno = *kept; }

/* ------------------------------------------------------- Real functions -- */

/* Names the function that stands in for a library's one, and declares
 * cbr_guard_real_NAME(), which returns the library's own. */
#ifdef CBR_GUARD_WRAP
#define CBR_GUARD_FUNCTION(name) __wrap_##name
#define CBR_GUARD_REAL(name)                                                \
  extern __typeof__(name) __wrap_##name;                                    \
  extern __typeof__(name) __real_##name;                                    \
  CBR_GUARD_UNUSED static __typeof__(name) *cbr_guard_real_##name(void) {   \
    return __real_##name;                                                   \
  }
#else
#define CBR_GUARD_FUNCTION(name) name
#define CBR_GUARD_REAL(name)                                                \
  CBR_GUARD_UNUSED static __typeof__(name) *cbr_guard_real_##name(void) {   \
    static cbr_function found;                                              \
    return (__typeof__(name) *)cbr_guard_find_real(&found, #name);          \
  }
#endif

/* Functions of the library that a guard calls and does not replace. */
#ifdef CBR_GUARD_WRAP
#define CBR_GUARD_USE(name)                                               \
  CBR_GUARD_UNUSED static __typeof__(name) *cbr_guard_real_##name(void) { \
    return name;                                                          \
  }
#else
#define CBR_GUARD_USE(name) CBR_GUARD_REAL(name)
#endif

/* Calls the library's own function. */
#define CBR_GUARD_CALL_REAL(name) (*cbr_guard_real_##name())

/* Looks the function up where the program would find it, then in the library,
 * which a program may have loaded by dlopen. */
CBR_GUARD_UNUSED
static cbr_function cbr_guard_find_real(cbr_function *found,
                                        const char *name) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_function function = __atomic_load_n(found, __ATOMIC_RELAXED);
  if (function) return function;
  void *address = dlsym(RTLD_NEXT, name);
  if (!address) {
    void *library = dlopen(CBR_GUARD_SONAME, RTLD_LAZY);
    if (library) address = dlsym(library, name);
  }
  if (!address) {
    fprintf(stderr,
            "guard of " CBR_GUARD_LIBRARY ": neither the program nor "
            CBR_GUARD_SONAME " has the function %s, which is called; take "
            "it out of the description, or name the right library\n",
            name);
    abort();
  }
  function = (cbr_function)(uintptr_t)address;
  __atomic_store_n(found, function, __ATOMIC_RELAXED);
  return function;
}

/* -------------------------------------------------------------- Cookies -- */

static inline void *cbr_guard_cookie(cbr_token token) {
  return (void *)(uintptr_t)token;
}

static inline cbr_token cbr_guard_from_cookie(const void *cookie) {
  return (cbr_token)(uintptr_t)cookie;
}

struct cbr_guard_object;
static struct cbr_guard_object *cbr_guard_dies(const void *address);
static void cbr_guard_died(struct cbr_guard_object *object, bool is_dead,
                           cbr_reason reason);

/* ---------------------------------------------------------------- State -- */

/* One callback of one object. */
typedef struct cbr_guard_cell {
  cbr_function function; /* what the program set */
  cbr_function called;   /* what is registered; NULL: nothing */
  void *data;            /* what the program's function is given */
  cbr_token token;
  uint32_t setters; /* that are setting it at this moment */
  uint32_t sets;    /* that have begun */
  bool has_data;    /* the program has set it */
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

/* Protected by the lock, but for the registry, which is read atomically. */
static pthread_rwlock_t cbr_guard_lock = PTHREAD_RWLOCK_INITIALIZER;
static cbr_guard_object *cbr_guard_objects[CBR_GUARD_BUCKETS];
static cbr_guard_object *cbr_guard_first_dead;
static cbr_guard_object *cbr_guard_last_dead;
static uint32_t cbr_guard_dead;
static cbr_registry cbr_guard_registry;
static uint64_t cbr_guard_end_at;
static uint64_t cbr_guard_calls;

/* What is being created on this thread: the library may call back before it
 * has said which object that is. */
static __thread cbr_guard_object *cbr_guard_pending;
/* Whether this thread is at work in the guard or the registry. */
static __thread bool cbr_guard_is_inside;

static void cbr_guard_lock_for_fork(void) {
  pthread_rwlock_wrlock(&cbr_guard_lock);
}

static void cbr_guard_unlock_after_fork(void) {
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* The child's own thread holds the lock, but by another number. */
static void cbr_guard_forked(void) {
  cbr_guard_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

/* ------------------------------------------------------------- Registry -- */

CBR_GUARD_UNUSED
static void cbr_guard_say(const char *what, const char *why) {
  static bool is_said;
  if (__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED)) return;
  fprintf(stderr, "guard of " CBR_GUARD_LIBRARY ": %s: %s\n", what, why);
}

static cbr_registry cbr_guard_open(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry registry = CBR_NONE;
  const char *level = secure_getenv("CBR_GUARD_LEVEL");
  options.label = "guard of " CBR_GUARD_LIBRARY;
  options.history_path = secure_getenv("CBR_GUARD_HISTORY");
  if (level && !strcmp(level, "off")) options.level = CBR_LEVEL_OFF;
  if (level && !strcmp(level, "lifecycle"))
    options.level = CBR_LEVEL_LIFECYCLE;
  if (cbr_registry_open(&options, &registry) != CBR_OK)
    cbr_guard_say("nothing is guarded", cbr_last_error());
  return registry;
}

static void cbr_guard_begin_process(void) {
  const char *mode = secure_getenv("CBR_GUARD");
  const char *end_at = secure_getenv("CBR_GUARD_END_AT");
  if (mode && !strcmp(mode, "off")) {
    cbr_guard_say("nothing is guarded", "the environment has CBR_GUARD=off");
    return;
  }
  if (end_at) cbr_guard_end_at = strtoull(end_at, NULL, 10);
  pthread_atfork(cbr_guard_lock_for_fork, cbr_guard_unlock_after_fork,
                 cbr_guard_forked);
  cbr_guard_is_inside = true;
  __atomic_store_n(&cbr_guard_registry, cbr_guard_open(), __ATOMIC_RELEASE);
  cbr_guard_is_inside = false;
}

/* After a fork: a registry of the child's own, once. */
static void cbr_guard_reopen(cbr_registry forked) {
  cbr_registry opened = cbr_guard_open();
  if (!__atomic_compare_exchange_n(&cbr_guard_registry, &forked, opened, false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    (void)cbr_registry_close(opened, CBR_FOREVER);
}

/* Where an address is: the file that it was loaded from. */
static const void *cbr_guard_module(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Whether the registry's own code is calling. Where it is linked into the same
 * file as everything else this cannot be told, and all goes through. */
static bool cbr_guard_is_own(const void *caller) {
  static const void *own;
  const void *module = __atomic_load_n(&own, __ATOMIC_RELAXED);
  if (!module) {
    module = cbr_guard_module((const void *)(uintptr_t)cbr_register);
    __atomic_store_n(&own, module, __ATOMIC_RELAXED);
  }
  if (cbr_guard_module(caller) != module) return false;
#ifdef CBR_GUARD_WRAP
  if (module == cbr_guard_module((const void *)(uintptr_t)cbr_guard_is_own))
    cbr_guard_say("nothing is guarded",
                  "the registry uses this library itself, and cannot be told "
                  "from the program: link libcallbackregistry.so instead of "
                  "the .a");
#endif
  return true;
}

/* Whether the library itself is calling, of which this is a function. */
static bool cbr_guard_is_library(const void *caller, cbr_function function) {
  const void *library = cbr_guard_module((const void *)(uintptr_t)function);
  return library == cbr_guard_module(caller) &&
         library !=
             cbr_guard_module((const void *)(uintptr_t)cbr_guard_is_own);
}

/* Whether a call goes straight through to the function. */
CBR_GUARD_UNUSED
static bool cbr_guard_is_off(const void *object, const void *caller,
                             cbr_function function) {
  CBR_GUARD_KEEPS_ERRNO;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (cbr_guard_is_inside || !object) return true;
  if (CBR_GUARD_OWN && cbr_guard_is_own(caller)) return true;
  if (cbr_guard_is_library(caller, function)) return true;
  pthread_once(&once, cbr_guard_begin_process);
  return __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE) == CBR_NONE;
}

/* -------------------------------------------------------------- Objects -- */

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

/* -------------------------------------------------------------- Setting -- */

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
    (void)cbr_guard_know(address);
  } else {
    set->created = cbr_guard_create(NULL);
    set->former_pending = cbr_guard_pending;
    cbr_guard_pending = set->created;
  }
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

static cbr_owner cbr_guard_owner_of(const cbr_guard_set *set) {
  pthread_rwlock_rdlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_of(set);
  cbr_owner owner = object ? object->owner : CBR_NONE;
  pthread_rwlock_unlock(&cbr_guard_lock);
  return owner;
}

/* A forked child makes owners of its own. */
static cbr_owner cbr_guard_renew_owner(const cbr_guard_set *set) {
  cbr_owner owner = cbr_guard_owner(set->address);
  pthread_rwlock_wrlock(&cbr_guard_lock);
  cbr_guard_object *object = cbr_guard_of(set);
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
  cbr_registry registry =
      __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE);
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
  cbr_status status = cbr_register(registry, &what, &token);
  if (status == CBR_E_FORKED) {
    if (!cbr_is_live(registry)) cbr_guard_reopen(registry);
    registry = __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE);
    if (what.owner) what.owner = cbr_guard_renew_owner(set);
    status = cbr_register(registry, &what, &token);
  }
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
  if (made.called)
    made.token = cbr_guard_register(set, slot, made.called, made.data);
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
  cbr_guard_cell made = {function, function, data, CBR_NONE, 0, 0, true};
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
    if (former->token && result == cbr_guard_cookie(former->token))
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

/* ---------------------------------------------------------- Option pairs -- */

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
    data = cbr_guard_cookie(token);
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
  } else {
    made.function = (cbr_function)(uintptr_t)value;
  }
  int result =
      cbr_guard_apply(all, pair, object, made, otherwise, is_data, caller);
  if (is_data) cbr_guard_share_data(all, pair, object, value);
  if (!is_data) cbr_guard_follow(all, pair, object, caller);
  return result;
}

/* ------------------------------------------------------ Copies and deaths -- */

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
    (void)cbr_guard_put(&set, slot, cells[slot].called, cells[slot].data);
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
  return token;
}

/* Ends all callbacks whose user data is about to die, of whatever objects.
 *   waits  until no thread is inside of one any more */
CBR_GUARD_UNUSED
static void cbr_guard_data_dies(const void *data, bool waits) {
  CBR_GUARD_KEEPS_ERRNO;
  cbr_token token;
  while ((token = cbr_guard_with_data(data)) != CBR_NONE) {
    cbr_guard_is_inside = true;
    if (waits)
      (void)!cbr_invalidate_wait(token, CBR_REASON_OBJECT_DIED, CBR_FOREVER);
    else
      (void)!cbr_invalidate(token, CBR_REASON_OBJECT_DIED);
    cbr_guard_is_inside = false;
  }
}

/* ---------------------------------------------------------- Trampolines -- */

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

/* The function of a token that the registry cannot be asked about. */
static void cbr_guard_pass(cbr_token token, cbr_guard_call *call) {
  pthread_rwlock_rdlock(&cbr_guard_lock);
  for (uint32_t each = 0; each < CBR_GUARD_BUCKETS; each++)
    for (cbr_guard_object *object = cbr_guard_objects[each]; object;
         object = object->next)
      for (uint32_t slot = 0; slot < CBR_GUARD_SLOTS; slot++)
        if (object->cells[slot].token == token) {
          call->function = object->cells[slot].called;
          call->data = object->cells[slot].data;
        }
  pthread_rwlock_unlock(&cbr_guard_lock);
}

/* CBR_GUARD_END_AT: takes the object of this call for dead. */
static void cbr_guard_end_object_of(cbr_token token) {
  cbr_owner owner = CBR_NONE;
  pthread_rwlock_rdlock(&cbr_guard_lock);
  for (uint32_t each = 0; each < CBR_GUARD_BUCKETS; each++)
    for (cbr_guard_object *object = cbr_guard_objects[each]; object;
         object = object->next)
      for (uint32_t slot = 0; slot < CBR_GUARD_SLOTS; slot++)
        if (object->cells[slot].token == token) owner = object->owner;
  pthread_rwlock_unlock(&cbr_guard_lock);
  (void)!cbr_invalidate(owner ? owner : token, CBR_REASON_OBJECT_DIED);
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

#endif
