/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and unloads the shared library named by its argument a hundred times,
 * using it each time on a thread of its own (J32).
 */
#include <callback_registry.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *library;

static void *use(void *unused) {
  const char *(*status_name)(int);
  cbr_status (*enter)(cbr_token, cbr_call *);
  cbr_call call;
  (void)unused;
  *(void **)&status_name = dlsym(library, "cbr_status_name");
  *(void **)&enter = dlsym(library, "cbr_enter");
  if (!status_name || !enter) return "symbols are missing";
  if (strcmp(status_name(CBR_OK), "CBR_OK") != 0) return "wrong name";
  if (enter(0, &call) == CBR_OK) return "entered nothing";
  return NULL;
}

int main(int count, char **arguments) {
  int round;
  if (count != 2) return 2;
  for (round = 0; round < 100; round++) {
    pthread_t thread;
    void *problem;
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    if (pthread_create(&thread, NULL, use, NULL) != 0) return 1;
    pthread_join(thread, &problem);
    if (problem) {
      fprintf(stderr, "round %d: %s\n", round, (const char *)problem);
      return 1;
    }
    dlclose(library);
  }
  return 0;
}
