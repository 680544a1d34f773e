/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

#include <stdio.h>

static int is_dead, calls, late;

void subject_died(void *what) {
  (void)what;
  is_dead = 1;
}

int subject_called(void) {
  if (is_dead) late++;
  return ++calls;
}

int subject_tell(void) {
  printf("calls %d, late %d\n", calls, late);
  return 0;
}
