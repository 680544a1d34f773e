/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a guard registers, and what it leaves alone. A part of
 * callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_REGISTRY_H
#define CALLBACK_REGISTRY_GUARD_REGISTRY_H

#include "real.h"

#include <pthread.h>
#include <string.h>

/* Whether this thread is at work in the guard or the registry. */
static __thread bool cbr_guard_is_inside;

/* Read and written atomically. */
static cbr_registry cbr_guard_registry;
static uint64_t cbr_guard_end_at;

/* Of the table of objects. */
static pthread_rwlock_t cbr_guard_lock = PTHREAD_RWLOCK_INITIALIZER;

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
  if (level && !strcmp(level, "off"))
    options.level = CBR_LEVEL_OFF;
  else if (level && !strcmp(level, "lifecycle"))
    options.level = CBR_LEVEL_LIFECYCLE;
  else if (level && strcmp(level, "calls"))
    cbr_guard_say("all calls are recorded",
                  "CBR_GUARD_LEVEL is none of off, lifecycle and calls");
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

/* The registry of this process. */
CBR_GUARD_UNUSED
static cbr_registry cbr_guard_current_registry(void) {
  cbr_registry registry =
      __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE);
  if (cbr_is_live(registry)) return registry;
  cbr_guard_reopen(registry);
  return __atomic_load_n(&cbr_guard_registry, __ATOMIC_ACQUIRE);
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

#endif
