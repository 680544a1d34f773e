/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that come and go by the hundred thousand (A4, J22): memory and the
 * file of rings stay as they are, and each thread's last event is there.
 */
#include "history.h"

#include <malloc.h>
#include <sys/stat.h>

enum { AT_ONCE = 8, WAVES = TIMES(12500, 2500), FIRST_WAVES = 500 };

/* What may be there of rings: one for each thread that runs, and this one's.
 * See RingFile.swift. */
enum { RING_BYTES = 1 << 16, AREA_BYTES = 2 << 16, FIRST_AREA = 327680 };

/* What memory in use may vary by, in bytes. */
enum { SLACK = 1 << 18 };

static history kept;
static cbr_registry registry;
static cbr_token token;

static void nothing(void *context) { (void)context; }

static void *call_and_note(void *unused) {
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_OK, cbr_audit_note(registry, token, "the last event"));
  return unused;
}

static void run_wave(void) {
  pthread_t threads[AT_ONCE];
  for (int each = 0; each < AT_ONCE; each++)
    CHECK(pthread_create(&threads[each], NULL, call_and_note, NULL) == 0);
  for (int each = 0; each < AT_ONCE; each++) pthread_join(threads[each], NULL);
}

/* In use of the heap, but for SQLite's cache, which has a bound of its own; a
 * sanitizer has another heap. */
static size_t memory_used(void) {
#ifdef SANITIZED
  return 0;
#else
  return mallinfo2().uordblks - (size_t)sqlite3_memory_used();
#endif
}

static off_t bytes_of_rings(void) {
  char directory[96], path[384];
  struct stat found = {0};
  snprintf(directory, sizeof directory, "%s.rings", kept.path);
  DIR *listing = opendir(directory);
  for (struct dirent *each; listing && (each = readdir(listing));) {
    if (each->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", directory, each->d_name);
    EQUAL(0, stat(path, &found));
  }
  if (listing) closedir(listing);
  return found.st_size;
}

static void open_with_small_rings(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  make_history(&kept);
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = RING_BYTES;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

static void A4_manyThreadsComeAndGo(void) {
  open_with_small_rings();
  for (int wave = 0; wave < FIRST_WAVES; wave++) run_wave();
  flush();
  size_t memory = memory_used();
  for (int wave = FIRST_WAVES; wave < WAVES; wave++) run_wave();
  flush();
  CHECK(memory_used() <= memory + SLACK);
  CHECK(bytes_of_rings() > FIRST_AREA);
  CHECK(bytes_of_rings() <= FIRST_AREA + (AT_ONCE + 1) * AREA_BYTES);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_registry(registry);
  const int64_t threads = WAVES * AT_ONCE;
  EQUAL(threads, number_in(&kept, "SELECT (SELECT count(*) FROM call) + "
                                  "coalesce(sum(calls), 0) FROM aggregate"));
  EQUAL(threads, number_in(&kept, "SELECT count(*) FROM note"));
  EQUAL(threads + 1, number_in(&kept, "SELECT count(*) FROM thread"));
  check_history(&kept);
  expect_no_rows(&kept, "SELECT * FROM losses");
  remove_history(&kept);
}

int main(void) {
  TEST(A4_manyThreadsComeAndGo);
  return finish();
}
