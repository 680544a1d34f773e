/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of thunks: none is used twice, and what is remembered of them takes
 * no memory for ever; no page is writable and executable; and where no code may
 * be made there is a status (G29, C17, and the scenarios of thunks).
 */
#include "thunks.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static cbr_registry registry;
static struct counted counted;
static cbr_token token;

typedef int plain(void);

static const cbr_type an_int = SCALAR(CBR_TYPE_INT32);

static int add_call(void *context) {
  count_call(context);
  return 1;
}

static cbr_signature returning(const int *otherwise) {
  cbr_signature signature = signature_of(an_int, NULL, 0, CBR_CONTEXT_FIRST);
  signature.otherwise = otherwise;
  return signature;
}

static cbr_token add_token(const char *label) {
  cbr_token added = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, label, add_call, &counted, NULL,
                              CBR_NONE, &added));
  return added;
}

/* Makes a thunk and ends it; returns its address. */
static plain *pass_thunk(const cbr_signature *signature) {
  cbr_thunk thunk = CBR_NONE;
  if (cbr_thunk_create(registry, token, signature, &thunk) != CBR_OK) {
    CHECK(!"a thunk");
    return NULL;
  }
  plain *call = (plain *)cbr_thunk_function(thunk);
  if (cbr_invalidate(thunk, CBR_REASON_ENDED) != CBR_OK) CHECK(!"an end");
  return call;
}

/* A line of /proc/self/<name> or a number of lines. */
struct maps {
  int count, executable, writable_and_executable, of_thunks;
};

static struct maps look_at_maps(void) {
  struct maps found = {0};
  char line[512], rights[8];
  FILE *file = fopen("/proc/self/maps", "r");
  CHECK(file != NULL);
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%*s %7s", rights) != 1) continue;
    found.count++;
    found.executable += rights[2] == 'x';
    found.writable_and_executable += rights[1] == 'w' && rights[2] == 'x';
    found.of_thunks += strstr(line, "cbr-thunks") != NULL;
  }
  if (file) fclose(file);
  return found;
}

static long resident_kilobytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%*s %ld", &pages) == 1);
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void G29_noPageIsWritableAndExecutable(void) {
  struct maps before = look_at_maps();
  cbr_signature signature = returning(NULL);
  for (int each = 0; each < 20000; each++) (void)pass_thunk(&signature);
  struct maps after = look_at_maps();
  EQUAL(before.writable_and_executable, after.writable_and_executable);
  CHECK(after.of_thunks > 0 && after.executable > before.executable);
#ifndef SANITIZED
  EQUAL(0, after.writable_and_executable);
#endif
}

/* Nobody has the address of another, or of one that was (C17). */
static int compare_addresses(const void *left, const void *right) {
  uintptr_t one = *(const uintptr_t *)left, other = *(const uintptr_t *)right;
  return (one > other) - (one < other);
}

static void C17_noAddressIsGivenOutTwice(void) {
  enum { MANY = 200000 };
  int count = TIMES(MANY, 20000);
  uintptr_t *all = calloc(MANY, sizeof *all);
  int defaults[2] = {-1, -2};
  for (int each = 0; each < count; each++) {
    cbr_signature signature = returning(&defaults[each & 1]);
    all[each] = (uintptr_t)pass_thunk(&signature);
  }
  qsort(all, (size_t)count, sizeof *all, compare_addresses);
  int same = 0;
  for (int each = 1; each < count; each++) same += all[each] == all[each - 1];
  EQUAL(0, same);
  free(all);
}

/* A late call finds its own registration, though the handle's slot and record
 * are another thunk's by now, at whose address it does not arrive (C9, C17). */
static void C17_lateCallsAfterReuse(void) {
  cbr_registry before = registry;
  cbr_token token_before = token;
  history it;
  registry = open_with_history(&it, "quarantine", CBR_LEVEL_LIFECYCLE);
  int otherwise = -5;
  cbr_signature signature = returning(&otherwise);
  token = add_token("others");
  cbr_token first = add_token("first");
  cbr_thunk thunk = make_thunk(registry, first, &signature), other;
  plain *late = (plain *)cbr_thunk_function(thunk);
  counted.calls = 0;
  EQUAL(1, late());
  end_now(thunk);
  EQUAL(-5, late());
  for (;;) { /* its slot is used again */
    other = make_thunk(registry, token, &signature);
    if (slot_of(other) == slot_of(thunk)) break;
    end_now(other);
  }
  EQUAL(-5, late());
  EQUAL(1, counted.calls);
  EQUAL(1, ((plain *)cbr_thunk_function(other))());
  EQUAL(2, counted.calls);
  for (int each = 0; each < 1000; each++) (void)pass_thunk(&signature);
  EQUAL(-5, late());
  end_now(other);
  close_registry(registry);
  check_history(&it);
  EQUAL(3, number_in(&it, "SELECT refusals FROM token_life "
                          "WHERE label = 'first' AND kind = 'thunk'"));
  EQUAL(3, number_in(&it, "SELECT sum(refusals) FROM token_life"));
  remove_history(&it);
  registry = before;
  token = token_before;
}

/* A million thunks, one after the other (G29). */
static void G29_aMillionThunksTakeNoMemory(void) {
  int count = TIMES(1000000, 30000);
  cbr_signature signature = returning(NULL);
  /* Until the quarantine is full. */
  for (int each = 0; each < TIMES(400000, 20000); each++)
    (void)pass_thunk(&signature);
  struct maps maps = look_at_maps();
  long kilobytes = resident_kilobytes();
  for (int each = 0; each < count; each++) (void)pass_thunk(&signature);
  EQUAL(maps.writable_and_executable, look_at_maps().writable_and_executable);
#ifndef SANITIZED
  /* Three mappings for each 8192, and their page tables. */
  CHECK(look_at_maps().count - maps.count <= 3 * (count / 8192 + 1));
  long grown = resident_kilobytes() - kilobytes;
  if (!CHECK(grown < 1024)) fprintf(stderr, "  %ld KiB more\n", grown);
#else
  (void)kilobytes;
#endif
}

/* In a child, whose pool reads the setting: what is out of the quarantine is
 * answered with its default for ever, and not recorded; what is in it is. */
static void pass_quarantine(void) {
  registry = open_registry("child", CBR_LEVEL_LIFECYCLE);
  token = add_token("child");
  int otherwise = -6;
  cbr_signature signature = returning(&otherwise);
  cbr_thunk thunk = make_thunk(registry, token, &signature);
  plain *late = (plain *)cbr_thunk_function(thunk);
  cbr_thunk live = make_thunk(registry, token, &signature);
  end_now(thunk);
  /* Its group ends, but for one that lives on. */
  for (int each = 0; each < 20000; each++) (void)pass_thunk(&signature);
  uint64_t refused = statistics_of(registry).refused;
  EQUAL(-6, late());
  EQUAL(refused + 1, statistics_of(registry).refused);
  end_now(live);
  /* Now all of it has ended; so many more end, and one is made. */
  for (int each = 0; each < 1001; each++) (void)pass_thunk(&signature);
  refused = statistics_of(registry).refused;
  EQUAL(-6, late());
  EQUAL(refused, statistics_of(registry).refused);
  CHECK(strstr(cbr_last_error(), "ended long ago") != NULL);
  plain *last = pass_thunk(&signature);
  EQUAL(-6, last());
  EQUAL(refused + 1, statistics_of(registry).refused);
  end_now(token);
  close_registry(registry);
}

static void C17_outOfQuarantine(void) {
  setenv("CBR_THUNK_QUARANTINE", "1000", 1);
  CHECK(holds_in_child(pass_quarantine));
  unsetenv("CBR_THUNK_QUARANTINE");
}

/* Who it was is known for longer than one group of addresses is in use. */
static void know_for_long(void) {
  registry = open_registry("child", CBR_LEVEL_OFF);
  token = add_token("child");
  int otherwise = -6;
  cbr_signature signature = returning(&otherwise);
  plain *late = pass_thunk(&signature);
  for (int each = 0; each < 2000; each++) (void)pass_thunk(&signature);
  uint64_t refused = statistics_of(registry).refused;
  EQUAL(-6, late());
  EQUAL(refused + 1, statistics_of(registry).refused);
  end_now(token);
  close_registry(registry);
}

/* What is over 32 or 64 bits is no small number, and other text is none. */
static void C17_quarantineByItsName(void) {
  static const char *const texts[] = {"4294967296", "99999999999999999999999",
                                      "", "-1", "many", "5x"};
  for (size_t each = 0; each < sizeof texts / sizeof *texts; each++) {
    WITHIN("CBR_THUNK_QUARANTINE=%s", texts[each]);
    setenv("CBR_THUNK_QUARANTINE", texts[each], 1);
    CHECK(holds_in_child(know_for_long));
  }
  unsetenv("CBR_THUNK_QUARANTINE");
}

/* Each default is a shape of its own; there are 2048. */
static void use_up_shapes(void) {
  registry = open_registry("child", CBR_LEVEL_OFF);
  token = add_token("child");
  cbr_thunk thunk;
  int each = 0;
  cbr_status status = CBR_OK;
  for (; each < 3000 && status == CBR_OK; each++) {
    cbr_signature signature = returning(&each);
    status = cbr_thunk_create(registry, token, &signature, &thunk);
  }
  EXPECT(CBR_E_LIMIT, status);
  CHECK(strstr(cbr_last_error(), "used up") != NULL);
  EQUAL(2049, each);
  /* Those that there are have more. */
  int known = 7;
  cbr_signature signature = returning(&known);
  end_now(make_thunk(registry, token, &signature));
  close_registry(registry);
}

static void C17_usedUpIsAStatus(void) { CHECK(holds_in_child(use_up_shapes)); }

/* ----------------------------------------------------- hardened systems -- */

/* Refuses a system call, or that with an argument of which a bit is set. */
static void refuse(int number, int argument, uint32_t bit) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               (uint32_t)(offsetof(struct seccomp_data, args) +
                          (size_t)argument * 8)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 0, bit ? 1 : 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {COUNT(code), code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Makes more thunks than a block has. */
static void make_many(void) {
  registry = open_registry("child", CBR_LEVEL_OFF);
  token = add_token("child");
  int otherwise = -8;
  cbr_signature signature = returning(&otherwise);
  plain *first = pass_thunk(&signature), *last = NULL;
  for (int each = 0; each < 20000; each++) last = pass_thunk(&signature);
  EQUAL(-8, first());
  EQUAL(-8, last());
  cbr_thunk thunk = make_thunk(registry, token, &signature);
  counted.calls = 0;
  EQUAL(1, ((plain *)cbr_thunk_function(thunk))());
  EQUAL(1, counted.calls);
  EQUAL(0, look_at_maps().writable_and_executable);
  end_now(thunk);
  close_registry(registry);
}

static void without_files_in_memory(void) {
  refuse(SYS_memfd_create, 0, 0);
  make_many();
}

static void without_mapping_again(void) {
  refuse(SYS_mremap, 0, 0);
  make_many();
}

static void without_code(void) {
  refuse(SYS_memfd_create, 0, 0);
  refuse(SYS_mprotect, 2, PROT_EXEC);
  registry = open_registry("child", CBR_LEVEL_OFF);
  token = add_token("child");
  cbr_signature signature = returning(NULL);
  for (int each = 0; each < 3; each++) {
    cbr_thunk thunk = 1;
    EXPECT(CBR_E_UNSUPPORTED,
           cbr_thunk_create(registry, token, &signature, &thunk));
    CHECK(thunk == CBR_NONE);
    CHECK(strstr(cbr_last_error(), "executes no code") != NULL);
  }
  EQUAL(0, statistics_of(registry).live_thunks);
  close_registry(registry);
}

/* As systemd's MemoryDenyWriteExecute: memory that was writable, or is, is
 * never executed. */
static void without_change_of_rights(void) {
  refuse(SYS_mprotect, 2, PROT_EXEC);
  make_many();
}

static void G29_onHardenedSystems(void) {
  WITHIN("no files in memory");
  CHECK(holds_in_child(without_files_in_memory));
  WITHIN("no mapping again");
  CHECK(holds_in_child(without_mapping_again));
  WITHIN("no change of rights");
  CHECK(holds_in_child(without_change_of_rights));
  WITHIN("no code");
  CHECK(holds_in_child(without_code));
}

int main(void) {
  /* First: a child that has made no code yet. */
  TEST(G29_onHardenedSystems);
  registry = open_registry("quarantine", CBR_LEVEL_OFF);
  token = add_token("all");
  TEST(G29_noPageIsWritableAndExecutable);
  TEST(C17_noAddressIsGivenOutTwice);
  TEST(C17_lateCallsAfterReuse);
  TEST(G29_aMillionThunksTakeNoMemory);
  TEST(C17_outOfQuarantine);
  TEST(C17_quarantineByItsName);
  TEST(C17_usedUpIsAStatus);
  end_now(token);
  close_registry(registry);
  return finish();
}
