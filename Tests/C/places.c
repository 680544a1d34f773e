/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings in a directory that the program has named: what is in them survives a
 * kill (A4, J1) and is written once, whoever opens the history with whichever
 * choice (J2); nobody takes those of another history for its own; what is
 * gone is said (A5); and a directory that will not do is refused (J43).
 */
#include "crash.h"
#include "saved.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/vfs.h>

enum { CALLS = 500 };

static history other;
/* The directory of rings; the children find it in the environment. */
static char place[64];
static cbr_registry registry;
static cbr_token token;

/* ---------------------------------------------------------- directories -- */

static uint32_t pretended_file_system = 0xEF53;

int statfs(const char *path, struct statfs *out) {
  (void)path;
  out->f_type = pretended_file_system;
  return 0;
}

static void make_place(void) {
  snprintf(place, sizeof place, "%s/cbr-rings-XXXXXX", P_tmpdir);
  CHECK(mkdtemp(place) != NULL);
  setenv("CBR_TEST_PLACE", place, 1);
}

static void make_scene(void) {
  make_history(&kept);
  make_history(&other);
  make_place();
}

/* A file that is not counted. */
static const char *known = "";

/* Files that are there; `last`, of 384 bytes, receives the name of one. */
static int count_files(const char *ending, char *last) {
  int count = 0;
  DIR *listing = opendir(place);
  for (struct dirent *each; listing && (each = readdir(listing));) {
    size_t length = strlen(each->d_name), end = strlen(ending);
    if (length < end || strcmp(each->d_name + length - end, ending)) continue;
    if (each->d_name[0] == '.' || strstr(known, each->d_name)) continue;
    if (last) snprintf(last, 384, "%.63s/%.255s", place, each->d_name);
    count++;
  }
  if (listing) closedir(listing);
  return count;
}

static saved save_placed(void) {
  char path[384] = "";
  EQUAL(1, count_files(".ring", path));
  return save(path);
}

static saved save_placed_beside(const saved *one) {
  known = one->path;
  saved other_one = save_placed();
  known = "";
  return other_one;
}

static void expect_unchanged(saved *it) {
  char path[384];
  snprintf(path, sizeof path, "%.383s", it->path);
  saved after = save(path);
  EQUAL(it->size, after.size);
  CHECK(after.bytes && memcmp(it->bytes, after.bytes, it->size) == 0);
  free(it->bytes);
  free(after.bytes);
}

/* Nothing may be left in the directory. */
static void remove_scene(void) {
  remove_history(&kept);
  remove_history(&other);
  CHECK(rmdir(place) == 0);
}

/* ------------------------------------------------------------ processes -- */

static void nothing(void *context) { (void)context; }

static cbr_registry open_at(const char *path, const char *directory,
                            uint32_t level) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "placed";
  options.history_path = path;
  options.ring_directory = directory;
  options.level = level;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = ring_bytes;
  cbr_registry opened = CBR_NONE;
  EXPECT(CBR_OK, cbr_registry_open(&options, &opened));
  return opened;
}

static void begin(const char *directory) {
  registry = open_at(kept.path, directory, CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

/* Opens a history without the option and closes it. */
static void reopen(const history *it) {
  close_registry(open_at(it->path, NULL, CBR_LEVEL_OFF));
}

/* In a child: half of the calls are written, half are in the rings only. */
static void live(bool is_placed) {
  begin(is_placed ? getenv("CBR_TEST_PLACE") : NULL);
  call_repeatedly(token, CALLS / 2);
  flush();
  call_repeatedly(token, CALLS / 2);
}

static pid_t spawn_in(const history *it, const char *what, int is_placed) {
  history saved_kept = kept;
  kept = *it;
  pid_t child = spawn_self(what, &is_placed, 1);
  kept = saved_kept;
  return child;
}

static void kill_one(const history *it, bool is_placed) {
  await_death(spawn_in(it, "die", is_placed), SIGKILL);
}

static pid_t stop_one(const history *it, bool is_placed) {
  int status = 0;
  pid_t child = spawn_in(it, "stop", is_placed);
  CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  return child;
}

static void end_one(pid_t child) {
  kill(child, SIGKILL);
  await_death(child, SIGKILL);
}

static void expect_crashes(const history *it, int crashes) {
  EQUAL(crashes, number_in(it, "SELECT count(*) FROM run "
                               "WHERE ended = 'crash'"));
  EQUAL(crashes * CALLS, number_in(it, "SELECT count(*) FROM call"));
  expect_no_rows(it, "SELECT * FROM losses");
  expect_no_rows(it, "SELECT * FROM ring_place");
  check_history(it);
}

/* ------------------------------------------------ one file, one history -- */

/* All is as it is beside the history, but the place. */
static void A4_ringsInANamedDirectory(void) {
  struct stat found;
  char path[384] = "", beside[96];
  make_scene();
  begin(place);
  EQUAL(1, count_files(".ring", path));
  CHECK(stat(path, &found) == 0);
  EQUAL(0600, found.st_mode & 0777);
  snprintf(beside, sizeof beside, "%.79s.rings", kept.path);
  CHECK(access(beside, F_OK) != 0);
  EQUAL(CBR_CRASH_PROTECTION_ON, statistics_of(registry).crash_protection);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM ring_place"));
  call_repeatedly(token, CALLS);
  close_registry(registry);
  EQUAL(0, count_files("", NULL));
  EQUAL(CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  expect_no_rows(&kept, "SELECT * FROM ring_place");
  check_history(&kept);
  remove_scene();
}

/* One history is recovered, by an opening that was not told of the directory;
 * the files of the other one there, of a process that lives and of a dead one,
 * are not touched. */
static void A4_twoHistoriesInOneDirectory(void) {
  make_scene();
  pid_t living = stop_one(&other, true);
  saved one = save_placed();
  kill_one(&other, true);
  saved another = save_placed_beside(&one);
  kill_one(&kept, true);
  EQUAL(3, count_files(".ring", NULL));
  for (int each = 0; each < 2; each++) {
    reopen(&kept);
    expect_crashes(&kept, 1);
    EQUAL(2, count_files(".ring", NULL));
  }
  expect_unchanged(&one);
  expect_unchanged(&another);
  end_one(living);
  reopen(&other);
  expect_crashes(&other, 2);
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

/* Whoever recovers is killed itself, wherever it has come to. */
static void A4_recoveryIsKilledToo(void) {
  const int points[] = {RINGS_READ, BATCH_COMMITTED, RINGS_ENDED,
                        RINGS_COMMITTED, RINGS_REMOVED};
  for (int each = 0; each < 5; each++) {
    WITHIN("point %d", points[each]);
    make_scene();
    kill_one(&kept, true);
    await_death(spawn_self("recover", &points[each], 1), SIGKILL);
    reopen(&kept);
    expect_crashes(&kept, 1);
    EQUAL(0, count_files("", NULL));
    remove_scene();
  }
}

/* A history that goes on in one place recovers a dead process of the other. */
static void J2_processesWithDifferentChoices(void) {
  for (int is_placed = 0; is_placed < 2; is_placed++) {
    gate removed = GATE(RINGS_REMOVED, CBR_NONE, NULL);
    WITHIN("placed %d", is_placed);
    make_scene();
    pid_t dying = stop_one(&kept, !is_placed);
    registry = open_at(kept.path, is_placed ? place : NULL, CBR_LEVEL_CALLS);
    EQUAL(1, count_files(".ring", NULL));
    /* Its writer has begun to look around. */
    EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                                CBR_NONE, &token));
    flush();
    close_gate(&removed);
    end_one(dying);
    await_gate(&removed);
    open_gate(&removed);
    close_registry(registry);
    expect_crashes(&kept, 1);
    EQUAL(0, count_files("", NULL));
    remove_scene();
  }
}

static void open_in_place(void *unused) {
  (void)unused;
  registry = open_at(kept.path, place, CBR_LEVEL_CALLS);
}

/* Somebody else locks the database while it is opened, for longer than the
 * writer waits at once: the place is noted all the same. */
static void J2_thePlaceIsNotedWhenThereIsTime(void) {
  const struct timespec while_locked = {0, 400000000};
  gate read = GATE(RINGS_READ, CBR_NONE, NULL);
  worker opener;
  make_scene();
  kill_one(&kept, true);
  close_gate(&read);
  start(&opener, "opener", open_in_place, NULL);
  await_gate(&read);
  sqlite3 *database = look_into_(&kept);
  EQUAL(SQLITE_OK,
        sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL));
  open_gate(&read);
  nanosleep(&while_locked, NULL);
  EQUAL(SQLITE_OK, sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL));
  sqlite3_close(database);
  join(&opener);
  EQUAL(CBR_CRASH_PROTECTION_ON, statistics_of(registry).crash_protection);
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM ring_place"));
  close_registry(registry);
  reopen(&kept);
  EQUAL(CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

/* Both have died, and one opening finds both. */
static void J2_theDeadOfBothChoices(void) {
  make_scene();
  kill_one(&kept, false);
  pid_t dying = stop_one(&kept, true);
  kill_one(&kept, false);
  end_one(dying);
  reopen(&kept);
  expect_crashes(&kept, 3);
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

/* ----------------------------------------------------- copies and moves -- */

static void copy_history(const history *from, const history *to) {
  sqlite3 *database = look_into_(from);
  char sql[128];
  snprintf(sql, sizeof sql, "VACUUM INTO '%.79s'", to->path);
  EQUAL(SQLITE_OK, sqlite3_exec(database, sql, NULL, NULL, NULL));
  sqlite3_close(database);
}

/* A copy knows of the same rings, and leaves them to the history that it was
 * made of. When that is gone they are its own. */
static void aCopyLeavesTheRings(void) {
  for (int is_gone = 0; is_gone < 2; is_gone++) {
    WITHIN("gone %d", is_gone);
    make_scene();
    kill_one(&kept, true);
    copy_history(&kept, &other);
    for (int each = 0; each < 2; each++) {
      reopen(&other);
      EQUAL(1, count_files(".ring", NULL));
    }
    expect_no_rows(&other, "SELECT * FROM fault");
    if (is_gone) remove_files(&kept);
    const history *heir = is_gone ? &other : &kept;
    reopen(heir);
    expect_crashes(heir, 1);
    EQUAL(0, count_files("", NULL));
    remove_scene();
  }
}

/* A history that has got another name still finds its rings. */
static void aRenamedHistoryFindsItsRings(void) {
  char from[96], to[96];
  const char *const ends[] = {"", "-wal"};
  make_scene();
  kill_one(&kept, true);
  for (int each = 0; each < 2; each++) {
    snprintf(from, sizeof from, "%.79s%s", kept.path, ends[each]);
    snprintf(to, sizeof to, "%.79s%s", other.path, ends[each]);
    CHECK(rename(from, to) == 0);
  }
  reopen(&other);
  expect_crashes(&other, 1);
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

/* A history of an earlier library has no table for it, and gets one. */
static void aHistoryOfAnEarlierLibrary(void) {
  make_scene();
  reopen(&kept);
  sqlite3 *database = look_into_(&kept);
  EQUAL(SQLITE_OK, sqlite3_exec(database, "DROP TABLE ring_place", NULL, NULL,
                                NULL));
  sqlite3_close(database);
  kill_one(&kept, false);
  reopen(&kept);
  kill_one(&kept, true);
  reopen(&kept);
  expect_crashes(&kept, 2);
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

/* A database in the place of a removed one says where they are, too. */
static void J41_theNewDatabaseKnowsThePlace(void) {
  char command[128];
  make_scene();
  await_death(spawn_in(&kept, "remove and die", true), SIGKILL);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM ring_place"));
  reopen(&kept);
  /* At least those of afterwards. */
  CHECK(number_in(&kept, "SELECT count(*) FROM call") >= CALLS);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                            "WHERE ended = 'crash'"));
  EQUAL(0, count_files("", NULL));
  snprintf(command, sizeof command, "rm -f %.79s.set-aside*", kept.path);
  CHECK(system(command) == 0);
  remove_scene();
}

/* --------------------------------------------------------- what is gone -- */

/* The directory is gone, as after a restart of the machine, and comes back, as
 * a disk that was mounted late: the one is said, once, and no reason not to
 * open; the other makes all good. */
static void A5_aDirectoryThatIsGoneIsSaid(void) {
  make_scene();
  kill_one(&kept, true);
  saved rings = save_placed();
  unlink(rings.path);
  CHECK(rmdir(place) == 0);
  for (int each = 0; each < 3; each++) {
    reopen(&kept);
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault"));
    EQUAL(1, number_in(&kept,
                       "SELECT count(*) FROM fault WHERE cause LIKE "
                       "'the rings of run 1 are not where they were%'"));
    EQUAL(1, number_in(&kept, "SELECT missing FROM ring_place"));
    EQUAL(CALLS / 2, number_in(&kept, "SELECT count(*) FROM call"));
  }
  CHECK(mkdir(place, 0700) == 0);
  restore(&rings, rings.size);
  reopen(&kept);
  EQUAL(CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  expect_no_rows(&kept, "SELECT * FROM ring_place");
  expect_no_rows(&kept, "SELECT * FROM conservation WHERE difference <> 0");
  free(rings.bytes);
  remove_scene();
}

/* What is no file of rings is set aside, and not looked for again. */
static void A5_unreadableRingsAreSetAside(void) {
  char path[384] = "";
  make_scene();
  kill_one(&kept, true);
  saved rings = save_placed();
  restore(&rings, 1000);
  free(rings.bytes);
  for (int each = 0; each < 2; each++) {
    reopen(&kept);
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault"));
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault "
                              "WHERE cause LIKE 'unreadable rings%'"));
  }
  expect_no_rows(&kept, "SELECT * FROM ring_place");
  EQUAL(1, count_files(".ring.set-aside", path));
  unlink(path);
  remove_scene();
}

/* Where everybody may make files, one of another user is not believed. */
static void aFileOfAnotherUserIsLeft(void) {
  if (geteuid() != 0) {
    fprintf(stderr, "SKIPPED: files cannot be given away here\n");
    return;
  }
  make_scene();
  kill_one(&kept, true);
  saved rings = save_placed();
  CHECK(chown(rings.path, 65534, 65534) == 0);
  reopen(&kept);
  EQUAL(CALLS / 2, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(1, count_files(".ring", NULL));
  CHECK(chown(rings.path, 0, 0) == 0);
  reopen(&kept);
  expect_crashes(&kept, 1);
  free(rings.bytes);
  remove_scene();
}

/* ------------------------------------------------------------- children -- */

#ifndef THREAD_SANITIZER /* whose children cannot start threads */

static void use_in_child(void) {
  begin(place);
  EQUAL(2, count_files(".ring", NULL));
  call_repeatedly(token, CALLS);
  close_registry(registry);
}

static void J27_aChildHasRingsOfItsOwnThere(void) {
  make_scene();
  begin(place);
  call_repeatedly(token, CALLS);
  for (int each = 0; each < 3; each++) {
    CHECK(holds_in_child(use_in_child));
    EQUAL(1, count_files(".ring", NULL));
  }
  close_registry(registry);
  EQUAL(4 * CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  check_history(&kept);
  remove_scene();
}

#endif

/* A child that lives on does not keep its dead parent's rings locked. */
static void J28_aChildDoesNotKeepItsParentsRings(void) {
  char path[96];
  long child = 0;
  make_scene();
  await_death(spawn_in(&kept, "fork and die", true), SIGKILL);
  snprintf(path, sizeof path, "%.79s.child", kept.path);
  FILE *file = fopen(path, "r");
  CHECK(file && fscanf(file, "%ld", &child) == 1);
  if (file) fclose(file);
  CHECK(child > 0 && kill((pid_t)child, 0) == 0);
  reopen(&kept);
  expect_crashes(&kept, 1);
  EQUAL(0, count_files("", NULL));
  if (child > 0) kill((pid_t)child, SIGKILL);
  unlink(path);
  remove_scene();
}

static void fork_and_die(void) {
  int ends[2];
  char path[96], ready;
  live(true);
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    CHECK(write(ends[1], "", 1) == 1);
    for (;;) pause();
  }
  CHECK(read(ends[0], &ready, 1) == 1);
  snprintf(path, sizeof path, "%.79s.child", kept.path);
  FILE *file = fopen(path, "w");
  CHECK(file && fprintf(file, "%ld", (long)child) > 0);
  if (file) fclose(file);
  die(SIGKILL);
}

/* ------------------------------------------------------------ bad input -- */

static cbr_status open_bad(const char *path, const char *directory) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = path;
  options.ring_directory = directory;
  cbr_registry opened = 1;
  cbr_status status = cbr_registry_open(&options, &opened);
  EQUAL(CBR_NONE, opened);
  return status;
}

/* The directory is named, with what is wrong and what to do; there is no
 * history, and no file in the directory. */
static void refused(const char *directory, const char *wrong,
                    const char *remedy) {
  WITHIN("%.60s", directory);
  EXPECT(CBR_E_AUDIT, open_bad(kept.path, directory));
  CHECK(strncmp(cbr_last_error(), "ring_directory ", 15) == 0);
  /* Of a very long name only the end is told. */
  if (strlen(directory) < 400)
    CHECK(strstr(cbr_last_error(), directory) != NULL);
  CHECK(strstr(cbr_last_error(), wrong) != NULL);
  CHECK(strstr(cbr_last_error(), remedy) != NULL);
  CHECK(access(kept.path, F_OK) != 0);
}

static const char *within_place(const char *name) {
  static char path[96];
  snprintf(path, sizeof path, "%.63s/%s", place, name);
  return path;
}

static void J43_directoriesThatAreNone(void) {
  char file[96], deep[8192];
  make_scene();
  EXPECT(CBR_E_INVALID, open_bad(kept.path, ""));
  CHECK(strstr(cbr_last_error(), "ring_directory is empty") != NULL);
  EXPECT(CBR_E_INVALID, open_bad(NULL, place));
  CHECK(strstr(cbr_last_error(), "history_path") != NULL);
  refused(within_place("missing"), "it does not exist", "make it");
  snprintf(file, sizeof file, "%s", within_place("file"));
  close(open(file, O_CREAT | O_WRONLY, 0600));
  refused(file, "it is not a directory", "name one");
  refused(within_place("file/below"), "it is not a directory", "name one");
  unlink(file);
  /* A name, and a path, that no system call takes. */
  memset(deep, 'd', sizeof deep);
  snprintf(deep, 16, "%s", "/tmp/");
  deep[5] = 'd';
  deep[300] = 0;
  refused(deep, "its name is too long", "shorten it");
  for (int each = 0; each < 4070; each += 2) memcpy(deep + each, "/.", 2);
  deep[4070] = 0;
  refused(deep, "its name is too long", "shorten it");
  WITHIN("%s", "");
  remove_scene();
}

static void J43_directoriesThatCannotBeWritten(void) {
  make_scene();
  /* Not even root can make files there. */
  if (access("/sys/kernel", F_OK) == 0) {
    EXPECT(CBR_E_AUDIT, open_bad(kept.path, "/sys/kernel"));
    CHECK(strstr(cbr_last_error(), "not writable") != NULL ||
          strstr(cbr_last_error(), "is read-only") != NULL ||
          strstr(cbr_last_error(), "no file can be made") != NULL);
    CHECK(access(kept.path, F_OK) != 0);
  }
  if (geteuid() != 0) {
    chmod(place, 0500);
    refused(place, "it is not writable", "make it writable");
    chmod(place, 0700);
  }
  remove_scene();
}

/* The history is on a local file system, and its rings are not to be. */
static void aNetworkFileSystemIsRefused(void) {
  make_scene();
  pretended_file_system = 0x6969;
  refused(place, "network file system", "name a directory on a local one");
  pretended_file_system = 0xEF53;
  WITHIN("%s", "");
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

static bool can_mount;

/* A view of the files of its own: what is mounted here is seen by nobody
 * else, and gone with the process. */
static void prepare_to_mount(void) {
  can_mount = unshare(CLONE_NEWNS) == 0 &&
              mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (!can_mount) fprintf(stderr, "SKIPPED: nothing can be mounted here\n");
}

static void J43_disksThatHaveNoRoomOrAreReadOnly(void) {
  if (!can_mount) return;
  make_scene();
  CHECK(mount("disk", place, "tmpfs", 0, "size=64k") == 0);
  refused(place, "its file system is full", "make room");
  EQUAL(0, count_files("", NULL));
  CHECK(mount("disk", place, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k") ==
        0);
  refused(place, "its file system is read-only", "on another one");
  WITHIN("%s", "");
  /* With room for the file and for no ring: it is said how far it goes. */
  CHECK(mount("disk", place, "tmpfs", MS_REMOUNT, "size=400k") == 0);
  begin(place);
  EQUAL(CBR_CRASH_PROTECTION_IN_PART,
        statistics_of(registry).crash_protection);
  close_registry(registry);
  CHECK(umount2(place, MNT_DETACH) == 0);
  remove_scene();
}

/* ------------------------------------------------------- on a full disk -- */

/* What is kept for a full disk is on the history's own. */
static void theReserveStaysBesideTheHistory(void) {
  char reserve[96];
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  make_scene();
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.ring_directory = place;
  options.calls_per_second = UINT64_MAX;
  options.max_bytes = 16 << 20;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
  call_repeatedly(token, 100000);
  snprintf(reserve, sizeof reserve, "%.79s.rings/ballast", kept.path);
  while (access(reserve, F_OK) != 0) {
    call_repeatedly(token, 1);
    flush();
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_(reserve, "is never made");
    sched_yield();
  }
  close_registry(registry);
  CHECK(access(reserve, F_OK) != 0);
  EQUAL(0, count_files("", NULL));
  remove_scene();
}

static void run(char **arguments) {
  const char *what = arguments[1];
  int value = atoi(arguments[3]);
  snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
  prepare_to_die(SIGKILL, 0, 0);
  if (strcmp(what, "recover") == 0) {
    prepare_to_die(SIGKILL, value, 1);
    reopen(&kept);
    die(BY_EXIT);
  }
  if (strcmp(what, "fork and die") == 0) fork_and_die();
  if (strcmp(what, "remove and die") == 0) {
    live(true);
    unlink(kept.path);
    flush();
    call_repeatedly(token, CALLS);
    die(SIGKILL);
  }
  live(value);
  if (strcmp(what, "stop") == 0) {
    kill(getpid(), SIGSTOP);
    for (;;) pause();
  }
  die(SIGKILL);
}

int main(int count, char **arguments) {
  if (count > 1) run(arguments);
  prepare_to_mount();
  TEST(A4_ringsInANamedDirectory);
  TEST(A4_twoHistoriesInOneDirectory);
  TEST(A4_recoveryIsKilledToo);
  TEST(J2_processesWithDifferentChoices);
  TEST(J2_thePlaceIsNotedWhenThereIsTime);
  TEST(J2_theDeadOfBothChoices);
  TEST(aCopyLeavesTheRings);
  TEST(aRenamedHistoryFindsItsRings);
  TEST(aHistoryOfAnEarlierLibrary);
  TEST(J41_theNewDatabaseKnowsThePlace);
  TEST(A5_aDirectoryThatIsGoneIsSaid);
  TEST(A5_unreadableRingsAreSetAside);
  TEST(aFileOfAnotherUserIsLeft);
#ifndef THREAD_SANITIZER
  TEST(J27_aChildHasRingsOfItsOwnThere);
#endif
  TEST(J28_aChildDoesNotKeepItsParentsRings);
  TEST(J43_directoriesThatAreNone);
  TEST(J43_directoriesThatCannotBeWritten);
  TEST(aNetworkFileSystemIsRefused);
  TEST(J43_disksThatHaveNoRoomOrAreReadOnly);
  TEST(theReserveStaysBesideTheHistory);
  return finish();
}
