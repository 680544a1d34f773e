/* SPDX-License-Identifier: Apache-2.0
 *
 * The kill matrix (A4, A5, J3, J5): how a process dies, where it or who
 * recovers it stands, and how full its ring is. Whatever it has acknowledged,
 * in a pipe, after the library's call had returned, is in the history after
 * the next opening: once, in its order, whole; or counted, exactly, where the
 * ring was full.
 */
#include "crash.h"

#include <fcntl.h>

/* Where the process stands; 0: it does what it does. */
static const int places[] = {
  0, BATCH_BEGAN, BATCH_WRITTEN, BATCH_COMMITTED, LOG_COPIED,
  RINGS_READ, RINGS_ENDED, RINGS_COMMITTED, RINGS_REMOVED
};
static const int ways[] = {SIGKILL, SIGSEGV, SIGABRT, BY_EXIT};
enum fill { EMPTY, ONE_RECORD, HALF, FULL, WRAPPED };
enum { PLACES = 9, WAYS = 4, FILLS = 5 };

/* The smallest ring, and how many records it has. */
enum { RING_BYTES = 4096, RECORDS = 128, BEYOND = 10 };

typedef struct cell {
  int how, place, fill;
} cell;

/* ------------------------------------------------ the process that dies -- */

static int pipe_end;
static cbr_registry registry;
static cbr_token trigger, token;
static int notes;

static void nothing(void *context) { (void)context; }

static void acknowledge(char what) {
  CHECK(write(pipe_end, &what, 1) == 1);
}

static void call(cbr_token token) {
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_OK, cbr_leave(&call));
}

static cbr_token added(const char *label) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, label, nothing, NULL, NULL, CBR_NONE,
                              &token));
  return token;
}

/* A note that finds no room, and whose time is over, is counted as lost. */
static bool is_noted(void) {
  char text[16];
  snprintf(text, sizeof text, "note %d", notes);
  cbr_status status = cbr_audit_note(registry, token, text);
  if (status == CBR_E_AUDIT) return false;
  EXPECT(CBR_OK, status);
  notes++;
  return true;
}

/* Does something that is recorded: registers, calls, notes, ends. */
static void act(char what) {
  if (what == 'R') token = added("killed callback");
  if (what == 'C') call(token);
  if (what == 'E') EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  if (what == 'N' && !is_noted()) what = 'L';
  acknowledge(what);
}

static void act_often(char what, int times) {
  for (int each = 0; each < times; each++) act(what);
}

/* Some eleven records. */
static void act_all(void) {
  for (const char *each = "CCNCCER"; *each; each++) act(*each);
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

/* So many that the next ones go on at the ring's beginning. */
static void go_round(int times) {
  for (int each = 0; each < times; each++) {
    act_all();
    flush();
  }
}

static void begin_life(int fill) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "killed";
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = RING_BYTES;
  options.block_timeout_ns = 1;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  trigger = added("trigger");
  token = added("killed callback");
  acknowledge('T');
  acknowledge('R');
  flush();
  if (fill == WRAPPED) go_round(18);
}

static void call_trigger(void *unused) {
  (void)unused;
  call(trigger);
}

/* A thread with a ring of its own gives the writer something to write. */
static void give_work(void) {
  static worker other;
  start(&other, "trigger", call_trigger, NULL);
  join(&other);
}

static gate held = GATE(BATCH_BEGAN, CBR_NONE, NULL);

/* The writer stands in a batch: what is recorded from now on stays. */
static void hold_writer(void) {
  close_gate(&held);
  give_work();
  await_gate(&held);
}

static void fill_ring(int fill) {
  if (fill == ONE_RECORD) act('C');
  if (fill == HALF) act_often('C', RECORDS / 2);
  if (fill == WRAPPED)
    for (int each = 0; each < 8; each++) act_all();
  if (fill == FULL) {
    act_often('C', RECORDS + BEYOND);
    act('N');
  }
}

/* Dies with the writer at a point, and with all of the ring in its batch. */
static void die_in_batch(cell it) {
  gate last = GATE(it.place, CBR_NONE, NULL);
  hold_writer();
  fill_ring(it.fill);
  give_work();
  close_gate(&last);
  open_gate(&held);
  await_gate(&last);
  die(it.how);
}

static void die_when_copied(cell it) {
  gate copied = GATE(LOG_COPIED, CBR_NONE, NULL);
  close_gate(&copied);
  await_gate(&copied);
  fill_ring(it.fill);
  die(it.how);
}

/* Goes on until it is killed by another. */
static void live_on(cell it) {
  if (it.fill == WRAPPED) {
    for (;;) go_round(3);
  }
  hold_writer();
  if (it.fill == FULL) {
    for (;;) act('C');
  }
  fill_ring(it.fill);
  for (;;) {
    cbr_is_live(token);
    acknowledge('i');
  }
}

static void exit_at_once(int signal) {
  (void)signal;
  _exit(EXITED);
}

static void live(cell it) {
  signal(SIGUSR1, exit_at_once);
  begin_life(it.fill);
  if (it.place == 0) live_on(it);
  if (it.place == LOG_COPIED) die_when_copied(it);
  if (it.place < LOG_COPIED) die_in_batch(it);
  hold_writer();
  fill_ring(it.fill);
  die(it.how);
}

/* ------------------------------------------------------ who looks at it -- */

/* What was acknowledged, but what leaves no trace. */
static char trace[1 << 16];
static int traced;

/* Reads what is acknowledged until the process is dead, and kills it when that
 * is `enough`; 0: it dies by itself. */
static void watch(pid_t child, int from, int how, int enough) {
  char text[512];
  ssize_t bytes;
  int seen = 0;
  bool is_killed = false;
  traced = 0;
  while ((bytes = read(from, text, sizeof text)) > 0) {
    for (ssize_t each = 0; each < bytes; each++)
      if (text[each] != 'i' && traced < (int)sizeof trace)
        trace[traced++] = text[each];
    seen += (int)bytes;
    if (enough == 0 || seen < enough || is_killed) continue;
    is_killed = true;
    EQUAL(0, kill(child, how == BY_EXIT ? SIGUSR1 : how));
  }
}

/* After how much a process is killed that goes on. */
static int some_of(int fill) {
  const int most[] = {100, 100, RECORDS, 600, 600};
  return 1 + rand() % most[fill];
}

static void run_to_death(cell it) {
  int ends[2];
  EQUAL(0, pipe2(ends, O_CLOEXEC));
  EQUAL(0, fcntl(ends[1], F_SETFD, 0));
  const int numbers[] = {it.how, it.place, it.fill, ends[1]};
  pid_t child = spawn_self("live", numbers, 4);
  close(ends[1]);
  watch(child, ends[0], it.how, it.place == 0 ? some_of(it.fill) : 0);
  close(ends[0]);
  await_death(child, it.how);
}

static void recover_and_die(cell it) {
  const int numbers[] = {it.how, it.place};
  await_death(spawn_self("recover", numbers, 2), it.how);
}

/* The kind of the event that something acknowledged has left; 0: none. */
static int kind_of(char what) {
  switch (what) {
    case 'C': return 1;
    case 'R': case 'T': return 5;
    case 'E': return 6;
    case 'N': return 15;
    default: return 0;
  }
}

/* Compares one row, which must be of the token that is in turn. */
static void expect_row(sqlite3_stmt *row, int kind, int64_t *token,
                       int *noted) {
  EQUAL(kind, sqlite3_column_int64(row, 0));
  if (kind == 5) {
    CHECK(*token != sqlite3_column_int64(row, 1));
    *token = sqlite3_column_int64(row, 1);
  }
  EQUAL(*token, sqlite3_column_int64(row, 1));
  if (kind != 15) return;
  char text[16];
  snprintf(text, sizeof text, "note %d", (*noted)++);
  CHECK(strcmp(text, (const char *)sqlite3_column_text(row, 2)) == 0);
}

static const char *const events_of_first_thread =
    "SELECT e.kind, e.token, n.text FROM event e JOIN ring r USING (ring) "
    "LEFT JOIN note n USING (sequence) "
    "WHERE r.run = 1 AND r.number = 1 AND e.kind IN (1, 5, 6, 15) "
    "ORDER BY e.sequence";

/* Follows the trace in the history; returns how far it is found, and how many
 * events there are besides. */
static int follow(int *besides) {
  sqlite3 *database = look_into_(&kept);
  sqlite3_stmt *row = NULL;
  int found = 0, noted = 0;
  int64_t token = 0;
  *besides = 0;
  EQUAL(SQLITE_OK, sqlite3_prepare_v2(database, events_of_first_thread, -1,
                                      &row, NULL));
  while (sqlite3_step(row) == SQLITE_ROW) {
    if (found == traced)
      ++*besides;
    else
      expect_row(row, kind_of(trace[found++]), &token, &noted);
  }
  sqlite3_finalize(row);
  sqlite3_close(database);
  return found;
}

/* A process that another kills may be about to acknowledge one thing more. */
static void expect_acknowledged(cell it) {
  int besides, unsure = it.place == 0;
  int missing = traced - follow(&besides);
  int64_t counted = number_in(
      &kept, "SELECT coalesce(sum(calls), 0) + (SELECT "
             "coalesce(sum(events), 0) FROM loss) FROM aggregate");
  CHECK(counted >= missing && counted + besides <= missing + unsure);
  if (it.fill != FULL) EQUAL(0, missing);
  if (it.fill == FULL && it.place != 0) EQUAL(BEYOND + 1, missing);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                            "WHERE run = 1 AND ended = 'crash'"));
  check_history(&kept);
}

static void run_cell(cell it) {
  WITHIN("killed by %d at %d, ring %d", it.how, it.place, it.fill);
  make_fast_history(&kept);
  run_to_death(it);
  if (it.place >= RINGS_READ) recover_and_die(it);
  recover();
  expect_acknowledged(it);
  remove_history(&kept);
}

/* Each place with each ring; each way to die with each place and each ring. */
static void A4_killMatrix(void) {
  srand((unsigned)getpid());
  for (int place = 0; place < PLACES; place++)
    for (int fill = 0; fill < FILLS; fill++)
      run_cell((cell){ways[(place + fill) % WAYS], places[place], fill});
}

/* CBR_SOAK_KILLS: that many more, chosen by chance. */
static void A4_killsByChance(void) {
  const char *soak = getenv("CBR_SOAK_KILLS");
  int rounds = soak ? atoi(soak) : 0;
  for (int round = 0; round < rounds; round++)
    run_cell((cell){ways[rand() % WAYS], places[rand() % PLACES],
                    rand() % FILLS});
}

static void run_and_die(int count, char **arguments) {
  snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
  cell it = {atoi(arguments[3]), atoi(arguments[4]), 0};
  if (count == 5) {
    prepare_to_die(it.how, it.place, 1);
    recover();
    _exit(TROUBLED);
  }
  it.fill = atoi(arguments[5]);
  pipe_end = atoi(arguments[6]);
  prepare_to_die(it.how, 0, 0);
  live(it);
}

int main(int count, char **arguments) {
  if (count > 1) run_and_die(count, arguments);
  TEST(A4_killMatrix);
  TEST(A4_killsByChance);
  return finish();
}
