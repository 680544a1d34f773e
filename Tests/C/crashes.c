/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process leaves behind that is killed (A4, J1): every event whose call
 * has returned is in the history when it is opened again, once, in order, and
 * with its names.
 */
#include "crash.h"
#include "saved.h"
#include "subject.h"

#include <fcntl.h>
#include <sys/mman.h>

/* What the killed process has done, told to the one that looks. */
typedef struct deeds {
  _Atomic uint64_t calls;
  _Atomic uint64_t registrations;
  _Atomic uint64_t endings;
} deeds;

static deeds *done;

static void nothing(void *context) { (void)context; }

static void call(cbr_token token) {
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_OK, cbr_leave(&call));
}

/* Lets this program do something with the history, and be killed at a point of
 * the library's, when it comes there for the n-th time, or else afterwards. */
static pid_t spawn(const char *what, int with, int point, int n) {
  return spawn_self(what, (const int[]){with, point, n}, 3);
}

static void run_killed_at(const char *what, int with, int point, int n) {
  await_death(spawn(what, with, point, n), with);
}

static void run_killed(const char *what, int with) {
  run_killed_at(what, with, 0, 0);
}

static void work(cbr_registry registry, cbr_owner owner, int registrations) {
  for (int each = 0; each < registrations; each++) {
    cbr_token token = CBR_NONE;
    EXPECT(CBR_OK, CBR_REGISTER(registry, "killed callback", nothing, NULL,
                                NULL, owner, &token));
    atomic_fetch_add(&done->registrations, 1);
    for (int every = 0; every < 10; every++) {
      call(token);
      atomic_fetch_add(&done->calls, 1);
    }
    if (each % 2) {
      EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
      atomic_fetch_add(&done->endings, 1);
    }
  }
}

/* The deeds are in a file beside the history, which both processes map. */
static void map_deeds(void) {
  char path[96];
  snprintf(path, sizeof path, "%s.deeds", kept.path);
  int file = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0 && ftruncate(file, sizeof *done) == 0);
  done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(done != MAP_FAILED);
  close(file);
}

static void live_on(int registrations) {
  cbr_registry registry = open_kept(CBR_LEVEL_CALLS);
  work(registry, add_owner(registry, "killed owner"), registrations);
}

/* Two threads work as fast as they can, until the process is killed. */
static cbr_registry shared_registry;

static void work_on(void *unused) {
  (void)unused;
  cbr_owner owner = add_owner(shared_registry, "killed owner");
  work(shared_registry, owner, 20000); /* for which a ring has room */
  for (;;) pause();
}

static void live_until_killed(void) {
  static worker threads[2];
  ring_bytes = 32 << 20;
  shared_registry = open_kept(CBR_LEVEL_CALLS);
  for (int each = 0; each < 2; each++)
    start(&threads[each], "worker", work_on, NULL);
  for (;;) pause();
}

static void begin(void) {
  make_history(&kept);
  map_deeds();
}

static void end(void) {
  char path[96];
  snprintf(path, sizeof path, "%s.deeds", kept.path);
  munmap(done, sizeof *done);
  unlink(path);
  remove_history(&kept);
}

/* As many are in the history as were done, or one more, which was on its way
 * when the process died. */
static void expect_done(_Atomic uint64_t *deed, uint64_t unsure,
                        const char *query) {
  uint64_t found = (uint64_t)number_in(&kept, query);
  CHECK(found >= *deed && found <= *deed + unsure);
}

static void expect_deeds(uint64_t unsure) {
  expect_done(&done->calls, unsure, "SELECT count(*) FROM call");
  expect_done(&done->registrations, unsure,
              "SELECT count(*) FROM control_event e JOIN callback c "
              "USING (callback) WHERE kind = 5 AND label = 'killed callback'");
  expect_done(&done->endings, unsure,
              "SELECT count(*) FROM control_event e JOIN callback c "
              "USING (callback) WHERE kind = 6 AND label = 'killed callback'");
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run WHERE ended = 'crash'"));
  check_history(&kept);
  expect_no_rows(&kept, "SELECT * FROM losses");
  expect_intact(&kept);
}

static void A4_everythingSurvivesAKill(void) {
  const int signals[] = {SIGKILL, SIGSEGV, SIGABRT};
  for (int each = 0; each < 3; each++) {
    begin();
    run_killed("live", signals[each]);
    recover();
    expect_deeds(0);
    recover();
    expect_deeds(0);
    end();
  }
}

/* The writer is killed at each of its steps, early and late, and so is who
 * recovers: nothing is lost, and nothing is there twice. */
static void J1_killedAtEachStep(void) {
  const int steps[] = {BATCH_BEGAN, BATCH_WRITTEN, BATCH_COMMITTED};
  const int recoveries[] = {RINGS_READ, BATCH_BEGAN, BATCH_WRITTEN,
                            BATCH_COMMITTED, RINGS_ENDED, RINGS_COMMITTED,
                            RINGS_REMOVED};
  for (int step = 0; step < 3; step++)
    for (int n = 1; n <= TIMES(2, 1); n++)
      for (int each = 0; each < 7; each += TIMES(1, 2)) {
        begin();
        run_killed_at("live long", SIGKILL, steps[step], n);
        run_killed_at("recover", SIGKILL, recoveries[each], n);
        recover();
        expect_deeds(1);
        end();
      }
}

/* The limits are so small that calls and other events are deleted while the
 * process records; each is there, or known to have been. */
static void live_within_limits(void) {
  cbr_registry registry = CBR_NONE;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.max_calls = options.max_events = 10000;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  for (int round = 0; round < 400; round++) {
    work(registry, add_owner(registry, "killed owner"), 100);
    EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                   NULL));
  }
}

static void J1_killedWhileItForgets(void) {
  const int points[] = {SEGMENT_ADDED, ROWS_PURGED};
  const int times[] = {1, 2, 9};
  const int ways[] = {SIGKILL, SIGSEGV, SIGABRT, BY_EXIT};
  for (int each = 0; each < 6; each++) {
    begin();
    run_killed_at("live within limits", ways[each % 4], points[each % 2],
                  times[each / 2]);
    recover();
    expect_done(&done->calls, 1,
                "SELECT (SELECT count(*) FROM call) + (SELECT "
                "coalesce(sum(rows), 0) FROM purge "
                "WHERE table_name LIKE 'call%')");
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'crash'"));
    check_history(&kept);
    expect_no_rows(&kept, "SELECT * FROM losses");
    expect_intact(&kept);
    end();
  }
}

/* At any moment: it is chosen by chance, and each of the two threads may have
 * recorded one thing more than it has told. CBR_SOAK_KILLS asks for more. */
static void A4_killedAtAnyMoment(void) {
  const char *soak = getenv("CBR_SOAK_KILLS");
  int rounds = soak ? atoi(soak) : TIMES(15, 3);
  srand((unsigned)getpid());
  for (int round = 0; round < rounds; round++) {
    begin();
    pid_t child = spawn("live until killed", SIGKILL, 0, 0);
    uint64_t enough = 1 + (uint64_t)rand() % 150000;
    while (done->calls < enough) sched_yield();
    EQUAL(0, kill(child, SIGKILL));
    await_death(child, SIGKILL);
    recover();
    expect_deeds(2);
    end();
  }
}

/* ------------------------------------------------------------- no room -- */

static uint32_t protection_of(cbr_registry registry) {
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  return statistics.crash_protection;
}

/* Files may grow to 1 MiB, in which a ring of 2 MiB has no room. */
static void live_without_room(void) {
  signal(SIGXFSZ, SIG_IGN);
  EQUAL(0, setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20}));
  ring_bytes = 2 << 20;
  cbr_registry registry = open_kept(CBR_LEVEL_CALLS);
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "killed callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
  for (int each = 0; each < 100; each++) call(token);
  EQUAL(CBR_CRASH_PROTECTION_IN_PART, protection_of(registry));
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DISK, CBR_FOREVER, NULL));
}

/* J20: where the disk has no room for a ring everything works but the
 * protection, which the history says. */
static void J20_aRingWithoutRoomOnTheDisk(void) {
  cbr_registry in_memory = open_registry("memory", CBR_LEVEL_OFF);
  EQUAL(CBR_CRASH_PROTECTION_OFF, protection_of(in_memory));
  close_registry(in_memory);
  begin();
  cbr_registry registry = open_kept(CBR_LEVEL_OFF);
  EQUAL(CBR_CRASH_PROTECTION_ON, protection_of(registry));
  close_registry(registry);
  run_killed("live without room", SIGKILL);
  recover();
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run WHERE ended = 'crash' "
                            "AND crash_protection = 'in part'"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault WHERE cause LIKE "
                            "'no room for a ring on the disk%'"));
  EQUAL(100, number_in(&kept, "SELECT count(*) FROM call"));
  expect_no_rows(&kept, "SELECT * FROM violations");
  expect_intact(&kept);
  end();
}

/* --------------------------------------------------------------- damage -- */

static remains left;

/* Recovers a damaged file: no more is found than was done, nothing that must
 * not be, and the history goes on. */
static void recover_damaged(size_t size) {
  restore_remains(&kept, &left, size);
  recover();
  CHECK((uint64_t)number_in(&kept, "SELECT count(*) FROM call") <=
        done->calls);
  expect_no_rows(&kept, "SELECT * FROM violations");
  expect_no_rows(&kept, "SELECT * FROM event e LEFT JOIN token t "
                        "USING (token) WHERE e.token <> 0 AND t.token IS NULL");
  remove_rings_(&kept);
}

/* Bytes in each part of the file are turned over, and it is cut. */
static void J18_damagedRingsAreReadAsFarAsTheyAreWhole(void) {
  const struct { size_t begin, end; } parts[] = {
    {0, 280},           {1024, 1100},        {65536, 65640},
    {327680, 327860},   {328704, 328740},    {331776, 332100},
  };
  begin();
  run_killed("live", SIGKILL);
  left = save_remains(&kept);
  saved *rings = &left.rings;
  CHECK(rings->bytes != NULL);
  for (int part = 0; part < 6; part++)
    for (size_t at = parts[part].begin; at < parts[part].end;
         at += TIMES(3, 41)) {
      rings->bytes[at] ^= 0xff;
      recover_damaged(rings->size);
      rings->bytes[at] ^= 0xff;
    }
  for (size_t size = 0; size < rings->size; size += TIMES(29999, 199999))
    recover_damaged(size);
  restore_remains(&kept, &left, rings->size);
  recover();
  expect_deeds(0);
  forget_remains(&left);
  end();
}

/* ------------------------------------------------------------- in flight -- */

static cbr_token tokens[3];
static _Atomic int inside;

static void stand_inside(void *unused) {
  (void)unused;
  cbr_call calls[3];
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, cbr_enter(tokens[each], &calls[each]));
  EXPECT(CBR_OK, cbr_leave(&calls[1]));
  atomic_fetch_add(&inside, 1);
  for (;;) pause();
}

static void stand_in_calls_at(uint32_t level) {
  cbr_registry registry = open_kept(level);
  const char *labels[] = {"outer", "left", "inner"};
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, CBR_REGISTER(registry, labels[each], nothing, NULL, NULL,
                                CBR_NONE, &tokens[each]));
  static worker threads[2];
  for (int each = 0; each < 2; each++)
    start(&threads[each], "inside", stand_inside, NULL);
  while (atomic_load(&inside) < 2) sched_yield();
}

/* J2: the calls that never returned are told, by thread and depth. */
static void A4_whatWasInFlightIsTold(void) {
  for (int timed = 0; timed < 2; timed++) {
    begin();
    run_killed(timed ? "stand timed" : "stand counted", SIGKILL);
    recover();
    EQUAL(4, number_in(&kept, "SELECT count(*) FROM in_flight_at_crash"));
    EQUAL(2, number_in(&kept, "SELECT count(DISTINCT thread) "
                              "FROM in_flight_at_crash"));
    expect_no_rows(&kept, "SELECT * FROM in_flight_at_crash "
                          "WHERE label NOT IN ('outer', 'inner')");
    EQUAL(2, number_in(&kept,
                       "SELECT count(*) FROM in_flight_at_crash i "
                       "JOIN in_flight_at_crash o USING (run, thread) "
                       "WHERE i.label = 'inner' AND o.label = 'outer' "
                       "AND o.depth < i.depth"));
    EQUAL(timed ? 4 : 0, number_in(&kept, "SELECT count(began_time) "
                                          "FROM in_flight_at_crash"));
    check_history(&kept);
    end();
  }
}

static void run_and_die(char **arguments) {
  const char *what = arguments[1];
  snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
  map_deeds();
  prepare_to_die(atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]));
  if (strcmp(what, "live") == 0) live_on(100);
  if (strcmp(what, "live long") == 0) {
    ring_bytes = 16 << 20;
    live_on(10000);
  }
  if (strcmp(what, "live within limits") == 0) live_within_limits();
  if (strcmp(what, "live without room") == 0) live_without_room();
  if (strcmp(what, "live until killed") == 0) live_until_killed();
  if (strcmp(what, "recover") == 0) recover();
  if (strcmp(what, "stand counted") == 0)
    stand_in_calls_at(CBR_LEVEL_LIFECYCLE);
  if (strcmp(what, "stand timed") == 0) stand_in_calls_at(CBR_LEVEL_CALLS);
  die(dying_how);
}

int main(int count, char **arguments) {
  if (count > 1) run_and_die(arguments);
  TEST(A4_everythingSurvivesAKill);
  TEST(J1_killedAtEachStep);
  TEST(J1_killedWhileItForgets);
  TEST(A4_killedAtAnyMoment);
  TEST(J20_aRingWithoutRoomOnTheDisk);
  TEST(J18_damagedRingsAreReadAsFarAsTheyAreWhole);
  TEST(A4_whatWasInFlightIsTold);
  return finish();
}
