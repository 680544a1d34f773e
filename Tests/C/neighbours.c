/* SPDX-License-Identifier: Apache-2.0
 *
 * A history and others beside it: processes that record in it (J2), children
 * (J27, J28), a program that opens the file itself (J30, J31), processors
 * that a thread moves between (J55), and other clocks (J57).
 */
#include "crash.h"

enum { CALLS = 1000, FEW = 20 };

static cbr_registry registry;
static cbr_token token;

static void nothing(void *context) { (void)context; }

static void call_often(int times) {
  call_repeatedly(token, times);
}

static void begin(void) {
  registry = open_kept(CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
}

static void end(void) {
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_registry(registry);
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

static void expect_calls(int64_t calls) {
  EQUAL(calls, number_in(&kept, "SELECT count(*) FROM call"));
  check_history(&kept);
  expect_no_rows(&kept, "SELECT * FROM losses");
}

static void await_stop(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
}

/* How many processes have rings there; `last`, of 384 bytes, receives the name
 * of one. */
static int count_rings(char *last) {
  char directory[96];
  int count = 0;
  snprintf(directory, sizeof directory, "%s.rings", kept.path);
  DIR *listing = opendir(directory);
  for (struct dirent *each; listing && (each = readdir(listing));) {
    size_t length = strlen(each->d_name);
    if (length < 5 || strcmp(each->d_name + length - 5, ".ring")) continue;
    if (last) snprintf(last, 384, "%.95s/%.255s", directory, each->d_name);
    count++;
  }
  if (listing) closedir(listing);
  return count;
}

/* ------------------------------------------------------ other processes -- */

/* Stands still when its history is open, until it is told to go on. */
static void record(void) {
  begin();
  flush();
  kill(getpid(), SIGSTOP);
  call_often(CALLS);
  end();
}

/* Processes of the same configuration have a file of rings each, and all of
 * their events are there. */
static void J2_processesHaveRingsOfTheirOwn(void) {
  enum { PROCESSES = 3 };
  pid_t children[PROCESSES];
  make_history(&kept);
  for (int each = 0; each < PROCESSES; each++) {
    children[each] = spawn_self("record", NULL, 0);
    await_stop(children[each]);
  }
  EQUAL(PROCESSES, count_rings(NULL));
  for (int each = 0; each < PROCESSES; each++) kill(children[each], SIGCONT);
  for (int each = 0; each < PROCESSES; each++)
    await_death(children[each], BY_EXIT);
  EQUAL(0, count_rings(NULL));
  EQUAL(PROCESSES, number_in(&kept, "SELECT count(DISTINCT run) FROM ring"));
  EQUAL(PROCESSES, number_in(&kept, "SELECT count(*) FROM run "
                                    "WHERE ended = 'closed'"));
  expect_calls(PROCESSES * CALLS);
  remove_history(&kept);
}

/* ------------------------------------------------------------- children -- */

#ifndef THREAD_SANITIZER /* whose children cannot start threads */

/* The parent's token is refused to it; what it opens is its own. */
static void use_in_child(void) {
  cbr_call call;
  EXPECT(CBR_E_FORKED, cbr_enter(token, &call));
  begin();
  EQUAL(2, count_rings(NULL));
  call_often(CALLS);
  end();
}

static void J27_aChildHasRingsOfItsOwn(void) {
  make_history(&kept);
  begin();
  call_often(CALLS);
  flush();
  for (int each = 0; each < FEW; each++) CHECK(holds_in_child(use_in_child));
  call_often(CALLS);
  end();
  expect_calls((FEW + 2) * CALLS);
  remove_history(&kept);
}

/* The rings of the only process; without what is before them in the file,
 * where its writer notes how fast its clock goes. */
static char *bytes_of_rings(size_t *size) {
  enum { FIRST_AREA = 327680 }; /* see RingFile.swift */
  char path[384] = "";
  EQUAL(1, count_rings(path));
  FILE *file = fopen(path, "rb");
  if (!CHECK(file != NULL)) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file) - FIRST_AREA;
  fseek(file, FIRST_AREA, SEEK_SET);
  char *bytes = malloc(*size);
  EQUAL(*size, fread(bytes, 1, *size, file));
  fclose(file);
  return bytes;
}

/* Waits until its parent has looked, and records in a history of its own. */
static void use_another_in_child(void) {
  cbr_call call;
  kill(getpid(), SIGSTOP);
  EXPECT(CBR_E_FORKED, cbr_enter(token, &call));
  make_history(&kept);
  begin();
  call_often(CALLS);
  end();
  remove_history(&kept);
  die(BY_EXIT);
}

/* All is written, so that nobody but a child could change them. */
static void J28_aChildDoesNotTouchItsParentsRings(void) {
  size_t sizes[2];
  make_history(&kept);
  begin();
  call_often(CALLS);
  pid_t child = fork();
  if (child == 0) use_another_in_child();
  await_stop(child);
  flush();
  char *before = bytes_of_rings(&sizes[0]);
  kill(child, SIGCONT);
  await_death(child, BY_EXIT);
  char *after = bytes_of_rings(&sizes[1]);
  EQUAL(sizes[0], sizes[1]);
  CHECK(memcmp(before, after, sizes[0]) == 0);
  free(before);
  free(after);
  end();
  expect_calls(CALLS);
  remove_history(&kept);
}

#endif

/* Has a child that does nothing any more when fork has returned to it, and
 * dies before it. */
static void leave_a_child(void) {
  int ends[2];
  char ready;
  begin();
  call_often(CALLS);
  CHECK(pipe(ends) == 0);
  if (fork() == 0) {
    alarm(2 * PATIENCE_SECONDS);
    dprintf(STDOUT_FILENO, "%ld\n", (long)getpid());
    CHECK(write(ends[1], "", 1) == 1);
    for (;;) pause();
  }
  CHECK(read(ends[0], &ready, 1) == 1);
  kill(getpid(), SIGKILL);
}

/* A child that lives on has its parent's memory, and no lock on its rings. */
static void J28_aChildDoesNotKeepItsParentsRings(void) {
  char self[256] = "", command[512];
  long child = 0;
  make_history(&kept);
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command, "exec %s 'leave a child' %s", self,
           kept.path);
  FILE *parent = popen(command, "r");
  CHECK(parent != NULL && fscanf(parent, "%ld", &child) == 1);
  int status = pclose(parent);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  CHECK(child > 0 && kill((pid_t)child, 0) == 0);
  begin();
  end();
  if (child > 0) kill((pid_t)child, SIGKILL);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                            "WHERE ended = 'crash'"));
  EQUAL(0, count_rings(NULL));
  expect_calls(CALLS);
  remove_history(&kept);
}

/* ------------------------------------------- the program's own SQLite -- */

/* What only works when nobody else has the file. */
static void take_the_file(void) {
  sqlite3 *database = NULL;
  EQUAL(SQLITE_OK, sqlite3_open(kept.path, &database));
  EQUAL(SQLITE_BUSY, sqlite3_exec(database, "PRAGMA journal_mode = DELETE",
                                  NULL, NULL, NULL));
  sqlite3_close(database);
}

/* The program opens the file, reads it and closes it, again and again: the
 * library's locks stay, so that no other process can take the file. */
static void J30_theProgramOpensTheFileItself(void) {
  make_history(&kept);
  begin();
  for (int each = 1; each <= FEW; each++) {
    call_often(CALLS);
    flush();
    EQUAL(each * CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  }
  await_death(spawn_self("take the file", NULL, 0), BY_EXIT);
  end();
  expect_calls(FEW * CALLS);
  remove_history(&kept);
}

#ifndef SANITIZED /* a process with a leak sanitizer cannot be traced */

/* Lines of a trace in which the database is opened; `others` are those where
 * that was not done as SQLite does it. */
static int count_openings(const char *trace, int *others) {
  char line[1024], name[96];
  int count = 0;
  FILE *file = fopen(trace, "r");
  snprintf(name, sizeof name, "\"%s\"", kept.path);
  *others = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (!strstr(line, name)) continue;
    count++;
    *others += !strstr(line, "O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC");
  }
  if (file) fclose(file);
  return count;
}

/* A process that opens a history, records and closes it opens the file once,
 * as SQLite does: closing it otherwise would drop SQLite's locks. */
static void J31_onlySQLiteOpensTheFile(void) {
  char self[256] = "", command[512], trace[80];
  int others;
  if (system("strace -qq true 2> /dev/null") != 0) {
    fprintf(stderr, "SKIPPED: nothing can be traced here\n");
    return;
  }
  make_history(&kept);
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(trace, sizeof trace, "%.63s/trace", kept.directory);
  snprintf(command, sizeof command, "strace -f -qq -o %s "
           "-e trace=open,openat,openat2,creat %s 'record on' %s", trace,
           self, kept.path);
  int status = system(command);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXITED);
  EQUAL(1, count_openings(trace, &others));
  EQUAL(0, others);
  unlink(trace);
  expect_calls(CALLS);
  remove_history(&kept);
}

#endif

/* --------------------------------------------------- processors, clocks -- */

static _Atomic int turn;

/* Two threads take turns, and each moves to another processor every time. */
static void note_in_turn(void *argument) {
  int self = *(int *)argument;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  for (int round = self; round < CALLS; round += 2) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(round / 3 % processors), &set);
    sched_setaffinity(0, sizeof set, &set);
    while (atomic_load(&turn) != round) sched_yield();
    char text[16];
    snprintf(text, sizeof text, "%d", round);
    EXPECT(CBR_OK, cbr_audit_note(registry, token, text));
    call_often(1);
    atomic_store(&turn, round + 1);
  }
}

/* What happened behind something has its number behind it, on whichever
 * threads and processors; and the time of a thread does not go back. */
static void J55_timeDoesNotGoBack(void) {
  worker threads[2];
  int selves[] = {0, 1};
  make_history(&kept);
  begin();
  atomic_store(&turn, 0);
  for (int each = 0; each < 2; each++)
    start(&threads[each], "in turn", note_in_turn, &selves[each]);
  for (int each = 0; each < 2; each++)
    pthread_join(threads[each].thread, NULL);
  end();
  EQUAL(CALLS, number_in(&kept, "SELECT count(*) FROM note"));
  expect_no_rows(&kept,
                 "SELECT * FROM (SELECT cast(text AS INTEGER) AS number,"
                 " row_number() OVER (ORDER BY sequence) - 1 AS place"
                 " FROM note) WHERE number <> place");
  expect_no_rows(&kept,
                 "SELECT * FROM (SELECT time_ns, lag(time_ns) OVER"
                 " (PARTITION BY ring ORDER BY sequence) AS before FROM event"
                 " WHERE kind IN (1, 15)) WHERE time_ns < before");
  expect_calls(CALLS);
  remove_history(&kept);
}

static void stand(bool is_written) {
  begin();
  call_often(CALLS);
  if (is_written) flush();
  call_often(CALLS);
  kill(getpid(), SIGKILL);
}

/* A process whose clock is a day ahead dies; the next one, whose clock is not,
 * recovers it and goes on behind it. Nothing is deleted for its age. */
static void J57_theClockWasAhead(void) {
  char self[256] = "", command[512];
  if (system("unshare --time --monotonic 86400 true 2> /dev/null") != 0) {
    fprintf(stderr, "SKIPPED: clocks cannot be set here\n");
    return;
  }
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  for (int is_written = 0; is_written < 2; is_written++) {
    make_history(&kept);
    snprintf(command, sizeof command, "exec unshare --time --monotonic 86400 "
             "%s '%s' %s", self, is_written ? "stand later" : "stand",
             kept.path);
    int status = system(command);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    begin();
    EQUAL(2 * CALLS, number_in(&kept, "SELECT count(*) FROM call"));
    call_often(CALLS);
    end();
    EQUAL(CALLS, number_in(&kept, "SELECT count(*) FROM call c JOIN ring r "
                                  "USING (ring) WHERE r.run = 2"));
    expect_no_rows(&kept, "SELECT min(sequence) FROM event e JOIN ring r "
                          "USING (ring) WHERE r.run = 2 HAVING min(sequence) "
                          "< (SELECT max(sequence) FROM event e JOIN ring r "
                          "USING (ring) WHERE r.run = 1)");
    expect_no_rows(&kept, "SELECT * FROM purge");
    expect_calls(3 * CALLS);
    remove_history(&kept);
  }
}

static void run(char **arguments) {
  const char *what = arguments[1];
  snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
  if (strcmp(what, "record") == 0) record();
  if (strcmp(what, "record on") == 0) {
    begin();
    call_often(CALLS);
    end();
  }
  if (strcmp(what, "leave a child") == 0) leave_a_child();
  if (strcmp(what, "take the file") == 0) take_the_file();
  if (strcmp(what, "stand") == 0) stand(false);
  if (strcmp(what, "stand later") == 0) stand(true);
  die(BY_EXIT);
}

int main(int count, char **arguments) {
  if (count > 1) run(arguments);
  TEST(J2_processesHaveRingsOfTheirOwn);
#ifndef THREAD_SANITIZER
  TEST(J27_aChildHasRingsOfItsOwn);
  TEST(J28_aChildDoesNotTouchItsParentsRings);
#endif
  TEST(J28_aChildDoesNotKeepItsParentsRings);
  TEST(J30_theProgramOpensTheFileItself);
#ifndef SANITIZED
  TEST(J31_onlySQLiteOpensTheFile);
#endif
  TEST(J55_timeDoesNotGoBack);
  TEST(J57_theClockWasAhead);
  return finish();
}
