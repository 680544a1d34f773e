/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the plug-in named by its argument, lets threads call it, ends it and
 * unloads it at once (H6), again and again: no thread is inside any more, and
 * none comes in, while the threads go on calling.
 */
#include <callback_registry.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 200, CALLERS = 2, ENOUGH = 5 };

static cbr_registry registry;
static cbr_token token;
static int is_over;
static int calls[CALLERS];

static void *call(void *argument) {
  int *own = argument;
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    cbr_token now = __atomic_load_n(&token, __ATOMIC_RELAXED);
    CBR_CALL(now, void (*)(void *),
             ((__atomic_add_fetch(own, 1, __ATOMIC_RELAXED),
               cbr_now.context)));
  }
  return NULL;
}

static void await_calls(void) {
  int each, before[CALLERS];
  for (each = 0; each < CALLERS; each++)
    before[each] = __atomic_load_n(&calls[each], __ATOMIC_RELAXED);
  for (each = 0; each < CALLERS; each++)
    while (__atomic_load_n(&calls[each], __ATOMIC_RELAXED) <
           before[each] + ENOUGH)
      sched_yield();
}

static const char *run_round(const char *path) {
  cbr_status (*start)(cbr_owner, cbr_registry, cbr_token *);
  cbr_owner owner;
  cbr_token fresh;
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return dlerror();
  *(void **)&start = dlsym(plugin, "plugin_start");
  if (!start) return "the plug-in has no start";
  if (cbr_owner_create(registry, "plug-in", &owner) != CBR_OK ||
      start(owner, registry, &fresh) != CBR_OK)
    return cbr_last_error();
  __atomic_store_n(&token, fresh, __ATOMIC_RELAXED);
  await_calls();
  if (cbr_invalidate_wait(owner, CBR_REASON_UNLOADED, CBR_FOREVER) != CBR_OK)
    return cbr_last_error();
  if (dlclose(plugin) != 0) return dlerror();
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) return "it is still loaded";
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[CALLERS];
  const char *problem = NULL;
  int round, each;
  if (count != 2 || cbr_registry_open(NULL, &registry) != CBR_OK) return 2;
  for (each = 0; each < CALLERS; each++)
    if (pthread_create(&threads[each], NULL, call, &calls[each]) != 0)
      return 2;
  for (round = 0; round < ROUNDS && !problem; round++)
    problem = run_round(arguments[1]);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (each = 0; each < CALLERS; each++) pthread_join(threads[each], NULL);
  if (problem) fprintf(stderr, "round %d: %s\n", round, problem);
  return problem != NULL ||
         cbr_registry_close(registry, CBR_FOREVER) != CBR_OK;
}
