/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories on a disk that is too small, that fills up, and that has room
 * again (I3, J20, J38, J39): a tmpfs of this program's own, for which it has
 * to be root.
 */
#include "crash.h"

#include <fcntl.h>
#include <sys/mount.h>

static cbr_registry registry;
static cbr_token token;

static bool can_mount;

/* A view of the files of its own: what is mounted here is seen by nobody
 * else, and gone with the process. */
static void prepare_to_mount(void) {
  can_mount = unshare(CLONE_NEWNS) == 0 &&
              mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (!can_mount) fprintf(stderr, "SKIPPED: nothing can be mounted here\n");
}

static bool make_disk(const char *size) {
  char options[32];
  if (!can_mount) return false;
  make_history(&kept);
  snprintf(options, sizeof options, "size=%s", size);
  return CHECK(mount("disk", kept.directory, "tmpfs", 0, options) == 0);
}

static void make_room(void) {
  CHECK(mount("disk", kept.directory, "tmpfs", MS_REMOUNT, "size=64m") == 0);
}

static void remove_disk(void) {
  CHECK(umount2(kept.directory, MNT_DETACH) == 0);
  CHECK(rmdir(kept.directory) == 0);
}

static const char *ballast(void) {
  static char path[80];
  snprintf(path, sizeof path, "%.60s/ballast", kept.directory);
  return path;
}

/* Takes all the room that is left. */
static void fill_disk(void) {
  static const char block[4096];
  int file = open(ballast(), O_WRONLY | O_CREAT, 0600);
  CHECK(file >= 0);
  while (write(file, block, sizeof block) > 0) {
  }
  EQUAL(ENOSPC, errno);
  close(file);
}

static void nothing(void *context) { (void)context; }

static void call_often(int times) {
  call_repeatedly(token, times);
}

static cbr_status open_on_disk(uint64_t ring_bytes) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = ring_bytes;
  return cbr_registry_open(&options, &registry);
}

static void add_token(void) {
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
}

static bool flushes(void) {
  cbr_status status =
      cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL);
  CHECK(status == CBR_OK || status == CBR_E_AUDIT);
  return status == CBR_OK;
}

static void expect_sums(void) {
  expect_no_rows(&kept, "SELECT * FROM conservation WHERE difference <> 0;"
                        "SELECT * FROM violations;"
                        "SELECT * FROM pragma_integrity_check "
                        "WHERE integrity_check <> 'ok'");
}

/* As many calls are rows, or counted. */
static void expect_calls(int64_t calls) {
  EQUAL(calls, number_in(&kept, "SELECT (SELECT count(*) FROM call) + "
                                "coalesce(sum(calls), 0) FROM aggregate"));
}

/* On any disk a history is opened, or it is said why not; the program goes
 * on, and nothing is missing when there is room. */
static void J20_disksOfAnySize(void) {
  for (int kilobytes = 16; kilobytes <= 4096 && can_mount; kilobytes *= 2) {
    char size[16];
    WITHIN("%d KiB", kilobytes);
    snprintf(size, sizeof size, "%dk", kilobytes);
    if (!make_disk(size)) return;
    cbr_status opened = open_on_disk(1 << 20);
    CHECK(opened == CBR_OK || opened == CBR_E_AUDIT);
    if (kilobytes == 4096) EXPECT(CBR_OK, opened);
    if (opened == CBR_OK) {
      add_token();
      call_often(1000);
      flushes();
      make_room();
      close_registry(registry);
      expect_calls(1000);
      expect_sums();
    } else {
      CHECK(strstr(cbr_last_error(), kept.path) != NULL);
    }
    remove_disk();
  }
}

static void *call_some(void *unused) {
  call_often(100);
  return unused;
}

/* It fills up and has room again while the program goes on. A thread that
 * begins in between has its ring in memory, which is said. */
static void J38_fullAndFreedAgain(void) {
  if (!make_disk("4m")) return;
  EXPECT(CBR_OK, open_on_disk(1 << 14));
  add_token();
  call_often(100);
  CHECK(flushes());
  fill_disk();
  call_often(2000);
  while (flushes()) call_often(100);
  int64_t before = number_in(&kept, "SELECT count(*) FROM call");
  EQUAL(CBR_HISTORY_DEGRADED, statistics_of(registry).history_state);
  on_thread(call_some, NULL);
  call_often(1000);
  EQUAL(before, number_in(&kept, "SELECT count(*) FROM call"));
  CHECK(unlink(ballast()) == 0);
  while (!flushes()) sched_yield();
  cbr_statistics now = statistics_of(registry);
  EQUAL(CBR_HISTORY_GOOD, now.history_state);
  EQUAL(now.events_emitted,
        now.events_written + now.events_aggregated + now.events_lost);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_registry(registry);
  EQUAL(now.events_lost, number_in(&kept, "SELECT coalesce(sum(events), 0) "
                                          "FROM loss"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault WHERE "
                            "sqlite_code & 255 = 13 AND failures > 0"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault WHERE cause LIKE "
                            "'no room for a ring on the disk%'"));
  expect_sums();
  remove_disk();
}

/* It is closed and opened again while the disk is full. */
static void J39_restartedOnAFullDisk(void) {
  if (!make_disk("4m")) return;
  EXPECT(CBR_OK, open_on_disk(1 << 14));
  add_token();
  call_often(100);
  CHECK(flushes());
  fill_disk();
  int64_t calls = 100;
  do {
    call_often(100);
    calls += 100;
  } while (flushes());
  EXPECT(CBR_E_AUDIT, cbr_registry_close(registry, 0));
  for (int each = 0; each < 3; each++) {
    cbr_status opened = open_on_disk(1 << 14);
    CHECK(opened == CBR_OK || opened == CBR_E_AUDIT);
    if (opened == CBR_OK) cbr_registry_close(registry, CBR_FOREVER);
  }
  CHECK(unlink(ballast()) == 0);
  recover();
  expect_calls(calls);
  expect_no_rows(&kept, "SELECT * FROM losses");
  expect_sums();
  remove_disk();
}

int main(void) {
  prepare_to_mount();
  TEST(J20_disksOfAnySize);
  TEST(J38_fullAndFreedAgain);
  TEST(J39_restartedOnAFullDisk);
  return finish();
}
