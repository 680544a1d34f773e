/* SPDX-License-Identifier: Apache-2.0
 * cc thunk.c $(pkg-config --cflags --libs callbackregistry) */
#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>

/* qsort has no void * for its comparison: a thunk brings the context. */
struct order {
  int direction;
};

static int compare(void *context, const void *left, const void *right) {
  const struct order *order = context;
  return order->direction * (*(const int *)left - *(const int *)right);
}

int main(void) {
  static const cbr_type arguments[] = {{CBR_TYPE_POINTER, 0, NULL},
                                       {CBR_TYPE_POINTER, 0, NULL}};
  cbr_signature signature = CBR_SIGNATURE_INIT;
  signature.result.kind = CBR_TYPE_INT32;
  signature.arguments = arguments;
  signature.count = 2;

  struct order falling = {-1};
  cbr_registry registry;
  cbr_token token;
  cbr_thunk thunk;
  if (cbr_registry_open(NULL, &registry) != CBR_OK ||
      CBR_REGISTER(registry, "order", compare, &falling, NULL, CBR_NONE,
                   &token) != CBR_OK ||
      cbr_thunk_create(registry, token, &signature, &thunk) != CBR_OK) {
    fprintf(stderr, "%s\n", cbr_last_error());
    return EXIT_FAILURE;
  }
  int (*by_order)(const void *, const void *) =
      (int (*)(const void *, const void *))cbr_thunk_function(thunk);

  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof *numbers, by_order);
  printf("%d %d %d\n", numbers[0], numbers[1], numbers[2]);
  int is_sorted = numbers[0] == 3 && numbers[2] == 1;

  /* Nothing is left of it, and somebody still has the address. */
  if (cbr_registry_close(registry, CBR_FOREVER) != CBR_OK)
    return EXIT_FAILURE;
  return is_sorted && by_order(&numbers[0], &numbers[1]) == 0
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}
