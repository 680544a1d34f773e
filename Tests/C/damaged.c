/* SPDX-License-Identifier: Apache-2.0
 *
 * What a dead process has left, and is damaged (J6, J7, J10, J12, J13, J14):
 * a start is never stopped by it, what is whole is recovered, the rest is
 * counted or set aside with a row in `fault`, and recording goes on.
 */
#include "crash.h"
#include "saved.h"

enum { CALLS = 20, PROCESSES = 10 };

/* Where things are in a file of rings; see RingFile.swift. */
enum { FIRST_AREA = 327680, RING_BYTES = 4096, RECORD_BYTES = 32 };

static cbr_registry registry;

/* ------------------------------------------------ the process that dies -- */

static void nothing(void *context) { (void)context; }

static void call_often(int times) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
  call_repeatedly(token, times);
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

/* Stands still with all that it has recorded in its ring. */
static void stand(void) {
  gate held = GATE(BATCH_BEGAN, CBR_NONE, NULL);
  close_gate(&held);
  registry = open_kept(CBR_LEVEL_CALLS);
  call_often(CALLS);
  await_gate(&held);
  kill(getpid(), SIGSTOP);
}

/* The same after half of it was written. */
static void write_and_stand(void) {
  registry = open_kept(CBR_LEVEL_CALLS);
  call_often(CALLS / 2);
  flush();
  call_often(CALLS / 2);
  kill(getpid(), SIGSTOP);
}

static void await_standing(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
}

static void end_standing(pid_t child) {
  EQUAL(0, kill(child, SIGKILL));
  await_death(child, SIGKILL);
}

/* A history that was closed before, and what a process leaves that dies. */
static remains leave(const char *what) {
  make_fast_history(&kept);
  recover();
  pid_t child = spawn_self(what, NULL, 0);
  await_standing(child);
  end_standing(child);
  return save_remains(&kept);
}

/* --------------------------------------------------------- what is left -- */

static int64_t calls_found(void) {
  return number_in(&kept, "SELECT count(*) FROM call");
}

static void expect_sums(void) {
  expect_no_rows(&kept, "SELECT * FROM conservation WHERE difference <> 0;"
                        "SELECT * FROM violations;"
                        "SELECT * FROM pragma_integrity_check "
                        "WHERE integrity_check <> 'ok'");
}

static int files_set_aside(void) {
  char directory[96];
  int count = 0;
  snprintf(directory, sizeof directory, "%s.rings", kept.path);
  DIR *listing = opendir(directory);
  for (struct dirent *each; listing && (each = readdir(listing));)
    count += strstr(each->d_name, ".set-aside") != NULL;
  if (listing) closedir(listing);
  return count;
}

/* Recording goes on (J12). */
static void expect_new_calls(void) {
  int64_t before = calls_found();
  registry = open_kept(CBR_LEVEL_CALLS);
  call_often(CALLS);
  flush();
  EQUAL(before + CALLS, calls_found());
  close_registry(registry);
}

/* Nobody finds the rings until they are put back. */
static saved take_rings_away(void) {
  saved rings = save_rings(&kept);
  CHECK(rings.bytes != NULL && unlink(rings.path) == 0);
  return rings;
}

/* A byte of its header is another one: the check finds that. */
static void J10_J12_oneOfTenIsDamaged(void) {
  saved rings[PROCESSES];
  make_fast_history(&kept);
  recover();
  for (int each = 0; each < PROCESSES; each++) {
    pid_t child = spawn_self("stand", NULL, 0);
    await_standing(child);
    end_standing(child);
    rings[each] = take_rings_away();
  }
  rings[PROCESSES / 2].bytes[16] ^= 0xff;
  for (int each = 0; each < PROCESSES; each++) {
    restore(&rings[each], rings[each].size);
    free(rings[each].bytes);
  }
  recover();
  EQUAL(CALLS * (PROCESSES - 1), calls_found());
  EQUAL(PROCESSES - 1, number_in(&kept, "SELECT count(*) FROM run "
                                        "WHERE ended = 'crash'"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault "
                            "WHERE cause LIKE 'unreadable rings%'"));
  EQUAL(1, files_set_aside());
  expect_sums();
  expect_new_calls();
  remove_history(&kept);
}

/* A record in the middle was never written, as after a loss of power: what is
 * before it is found, and what is behind it is counted. */
static void J6_aHoleIsNotReadAsData(void) {
  remains left = leave("stand");
  char *area = left.rings.bytes + FIRST_AREA;
  uint64_t head;
  memcpy(&head, area, sizeof head);
  for (uint64_t behind = 1; behind <= CALLS; behind += 3) {
    WITHIN("%d before the last", (int)behind);
    char record[RECORD_BYTES];
    char *hole = area + RING_BYTES + (head - behind) * RECORD_BYTES;
    memcpy(record, hole, RECORD_BYTES);
    memset(hole, 0, RECORD_BYTES);
    restore_remains(&kept, &left, left.rings.size);
    memcpy(hole, record, RECORD_BYTES);
    recover();
    EQUAL(CALLS - behind, calls_found());
    EQUAL(behind, number_in(&kept, "SELECT sum(events) FROM losses "
                                   "WHERE cause = 'the ring was damaged'"));
    expect_sums();
  }
  forget_remains(&left);
  remove_history(&kept);
}

/* J67: what is in the history already does not get into it again. */
static void J67_ringsThatComeBackAddNothing(void) {
  remains left = leave("stand");
  recover();
  EQUAL(CALLS, calls_found());
  char directory[96];
  int64_t events = number_in(&kept, "SELECT count(*) FROM event");
  for (int each = 0; each < 2; each++) {
    snprintf(directory, sizeof directory, "%s.rings", kept.path);
    CHECK(mkdir(directory, 0700) == 0);
    restore(&left.rings, left.rings.size);
    recover();
    EQUAL(CALLS, calls_found());
    /* Only this recovery's own registry is new. */
    CHECK(number_in(&kept, "SELECT count(*) FROM event") <= events + 4 * each +
                                                                4);
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'crash'"));
    expect_sums();
  }
  forget_remains(&left);
  remove_history(&kept);
}

/* It is set aside where not even its header is whole. */
static void J7_J14_ringsOfAnyLength(void) {
  remains left = leave("stand");
  const size_t sizes[] = {0, 1, 4096, FIRST_AREA - 1, FIRST_AREA,
                          FIRST_AREA + 1, FIRST_AREA + RING_BYTES};
  for (int each = 0; each < 7; each++) {
    WITHIN("%zu bytes", sizes[each]);
    restore_remains(&kept, &left, sizes[each]);
    recover();
    bool has_header = sizes[each] >= FIRST_AREA;
    EQUAL(0, calls_found());
    EQUAL(!has_header, files_set_aside());
    EQUAL(!has_header, number_in(&kept, "SELECT count(*) FROM fault"));
    EQUAL(has_header, number_in(&kept, "SELECT count(*) FROM run "
                                       "WHERE ended = 'crash'"));
    expect_sums();
    expect_new_calls();
    remove_files(&kept);
  }
  forget_remains(&left);
  remove_history(&kept);
}

/* What of the log is gone is still in the rings, as long as their run is
 * known. */
static void expect_all_or_set_aside(void) {
  recover();
  if (files_set_aside() == 0)
    EQUAL(CALLS, calls_found());
  else
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault "
                              "WHERE cause = 'rings of an unknown run'"));
  expect_sums();
  expect_new_calls();
  remove_files(&kept);
}

/* Its length is as it was, but the end was not written (J13); or it is cut. */
static void J7_J13_theLogIsTorn(void) {
  remains left = leave("write and stand");
  size_t size = left.log.size;
  CHECK(size > 0);
  for (size_t whole = 0; whole <= size; whole += TIMES(9973, 49999)) {
    WITHIN("%zu of %zu bytes", whole, size);
    restore_remains(&kept, &left, left.rings.size);
    restore(&left.log, whole);
    expect_all_or_set_aside();
    char *torn = calloc(1, size);
    memcpy(torn, left.log.bytes, whole);
    saved log = left.log;
    log.bytes = torn;
    restore_remains(&kept, &left, left.rings.size);
    restore(&log, size);
    expect_all_or_set_aside();
    free(torn);
  }
  forget_remains(&left);
  remove_history(&kept);
}

/* The index of the log is made anew from it. */
static void J7_theIndexOfTheLogIsOfAnyLength(void) {
  remains left = leave("write and stand");
  char path[96];
  snprintf(path, sizeof path, "%s-shm", kept.path);
  for (int bytes = 0; bytes <= 40000; bytes += TIMES(3331, 13337)) {
    WITHIN("%d bytes", bytes);
    restore_remains(&kept, &left, left.rings.size);
    FILE *index = fopen(path, "wb");
    for (int each = 0; each < bytes; each++) fputc(0xA5, index);
    fclose(index);
    expect_all_or_set_aside();
  }
  forget_remains(&left);
  remove_history(&kept);
}

static void run(char **arguments) {
  snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
  prepare_to_die(SIGKILL, 0, 0);
  if (strcmp(arguments[1], "stand") == 0) stand();
  if (strcmp(arguments[1], "write and stand") == 0) write_and_stand();
  _exit(TROUBLED);
}

int main(int count, char **arguments) {
  if (count > 1) run(arguments);
  TEST(J10_J12_oneOfTenIsDamaged);
  TEST(J6_aHoleIsNotReadAsData);
  TEST(J67_ringsThatComeBackAddNothing);
  TEST(J7_J14_ringsOfAnyLength);
  TEST(J7_J13_theLogIsTorn);
  TEST(J7_theIndexOfTheLogIsOfAnyLength);
  return finish();
}
