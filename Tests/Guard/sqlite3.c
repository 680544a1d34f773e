/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks of a connection, whose user data dies at the first row; a hook is
 * replaced, and answers the data of the former one.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "subject.h"

static void changed(void *data, int action, const char *database,
                    const char *table, sqlite3_int64 row) {
  (void)action;
  (void)database;
  (void)table;
  (void)row;
  if (subject_called() == 1) subject_died(data);
}

static int refuse(void *data) { return ++*(int *)data > 1; }

static int interrupt(void *data) { return *(int *)data; }

int main(void) {
  static int mortal, other, commits, stops = 1;
  sqlite3 *base;
  sqlite3_open(":memory:", &base);
  sqlite3_exec(base, "CREATE TABLE t(a)", NULL, NULL, NULL);
  printf("none %d\n", sqlite3_update_hook(base, changed, &other) == NULL);
  printf("former %d\n",
         sqlite3_update_hook(base, changed, &mortal) == &other);
  sqlite3_exec(base, "INSERT INTO t VALUES (1),(2),(3)", NULL, NULL, NULL);
  printf("last %d\n", sqlite3_update_hook(base, NULL, NULL) == &mortal);
  sqlite3_commit_hook(base, refuse, &commits);
  printf("committed %d\n",
         sqlite3_exec(base, "INSERT INTO t VALUES (4)", NULL, NULL, NULL));
  printf("refused %d\n",
         sqlite3_exec(base, "INSERT INTO t VALUES (5)", NULL, NULL, NULL));
  sqlite3_commit_hook(base, NULL, NULL);
  sqlite3_progress_handler(base, 1, interrupt, &stops);
  printf("interrupted %d\n",
         sqlite3_exec(base, "SELECT count(*) FROM t", NULL, NULL, NULL));
  sqlite3_progress_handler(base, 0, NULL, NULL);
  printf("closed %d\n", sqlite3_close(base));
  return subject_tell();
}
