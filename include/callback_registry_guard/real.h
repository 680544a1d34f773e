/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the library itself, and what surrounds a call of them. A
 * part of callback_registry_guard.h.
 */
#ifndef CALLBACK_REGISTRY_GUARD_REAL_H
#define CALLBACK_REGISTRY_GUARD_REAL_H

#include "../callback_registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Not every guard uses all of it. */
#define CBR_GUARD_UNUSED __attribute__((unused))

/* For functions after which errno is what it was: a program may look at it
 * after any call of the library's. */
#define CBR_GUARD_KEEPS_ERRNO \
  __attribute__((cleanup(cbr_guard_restore_errno))) int guard_errno = errno

static inline void cbr_guard_restore_errno(const int *kept) { errno = *kept; }

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

#endif
