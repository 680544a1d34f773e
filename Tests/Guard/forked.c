/* SPDX-License-Identifier: Apache-2.0
 *
 * A child that goes on with what was set before it was forked, and sets more.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int hits;

static int count(void *data) {
  ++*(int *)data;
  return 0;
}

static void commit(sqlite3 *base) {
  sqlite3_exec(base, "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)",
               NULL, NULL, NULL);
}

int main(void) {
  sqlite3 *base;
  sqlite3_open(":memory:", &base);
  sqlite3_commit_hook(base, count, &hits);
  commit(base);
  pid_t child = fork();
  if (child == 0) {
    int inherited, more = 0;
    hits = 0;
    commit(base);
    inherited = hits;
    sqlite3_commit_hook(base, count, &more);
    commit(base);
    printf("inherited %d, more %d\n", inherited, more);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  commit(base);
  printf("parent %d\n", hits);
  return sqlite3_close(base);
}
