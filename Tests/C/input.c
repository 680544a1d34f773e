/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input: each gets the status that the header lists and a last error that
 * names what is wrong, and nothing is taken or changed (G6, C15, F15). Running
 * out of memory is bad luck and treated alike, at every allocation.
 */
#include <limits.h>
#include <sys/stat.h>

#include "fixture.h"

/* ------------------------------------------------------------ the scene -- */

static struct scene {
  cbr_registry registry;
  cbr_owner owner;
  cbr_token token, with_methods;
  cbr_lease_handle lease;
  struct counted context;
} scene;

/* Of the type that it is called with. */
static void nothing(void *context) { (void)context; }

static const cbr_function table[] = {(cbr_function)nothing, NULL};
static const cbr_method methods[] = {
    {"required", CBR_METHOD_REQUIRED, 0},
    {"optional", CBR_METHOD_DEFAULT, 5},
};
static const cbr_interface interface = {sizeof(cbr_interface), "input", 1, 2,
                                        methods};

static cbr_registration good(void) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "label";
  what.function = (cbr_function)count_call;
  what.context = &scene.context;
  what.destroy = count_destroy;
  return what;
}

static cbr_registration good_with_methods(void) {
  cbr_registration what = good();
  what.function = NULL;
  what.interface = &interface;
  what.methods = table;
  return what;
}

static void make_scene(uint32_t level) {
  memset(&scene, 0, sizeof scene);
  scene.registry = open_registry("scene", level);
  scene.owner = add_owner(scene.registry, "owner");
  scene.token = add(scene.registry, "token", &scene.context, true,
                    scene.owner);
  cbr_registration what = good_with_methods();
  EXPECT(CBR_OK, cbr_register(scene.registry, &what, &scene.with_methods));
  EXPECT(CBR_OK, cbr_lease(scene.token, &scene.lease));
}

static void end_scene(void) {
  WITHIN("the end");
  EXPECT(CBR_OK, cbr_lease_end(scene.lease));
  CHECK(calls(scene.token));
  EQUAL(0, destroyed(&scene.context));
  close_registry(scene.registry);
  EQUAL(2, destroyed(&scene.context));
}

/* What bad input leaves alone. */
struct state {
  cbr_statistics statistics;
  struct counted context;
};

static struct state state_now(void) {
  struct state state;
  state.statistics = statistics_of(scene.registry);
  state.context = scene.context;
  return state;
}

static void expect_same(const struct state *before) {
  struct state now = state_now();
  const cbr_statistics *a = &before->statistics, *b = &now.statistics;
  EQUAL(a->live_tokens, b->live_tokens);
  EQUAL(a->live_owners, b->live_owners);
  EQUAL(a->live_leases, b->live_leases);
  EQUAL(a->unsettled, b->unsettled);
  EQUAL(a->registered, b->registered);
  EQUAL(a->ended, b->ended);
  EQUAL(a->abandoned, b->abandoned);
  CHECK(memcmp(&before->context, &now.context, sizeof now.context) == 0);
}

static void expect_refused(cbr_status expected, cbr_status status,
                           const char *sentence) {
  EXPECT(expected, status);
  const char *error = cbr_last_error();
  if (strstr(error, sentence)) return;
  fprintf(stderr, "the last error is \"%s\" and lacks \"%s\"\n", error,
          sentence);
  fail_();
}

/* A row of a table of bad input: the status, a part of the last error, and
 * the call. */
#define BAD(expected, sentence, expression)              \
  do {                                                   \
    WITHIN("line %d: " #expected, __LINE__);             \
    struct state before = state_now();                   \
    cbr_status status = (expression);                    \
    expect_refused(CBR_E_##expected, status, sentence);  \
    expect_same(&before);                                \
  } while (0)

static const char *text_of(size_t length) {
  static char text[8192];
  memset(text, 'x', length);
  text[length] = 0;
  return text;
}

/* A copy of a structure with 16 more bytes, all of one value. */
#define LONGER(Structure)     \
  struct {                    \
    Structure known;          \
    unsigned char tail[16];   \
  }
#define LENGTHEN(longer, value)                    \
  ((longer).known.size = sizeof(longer),           \
   memset((longer).tail, (value), sizeof(longer).tail))

/* ------------------------------------------------------------- statuses -- */

static void C10_anyNumberHasANameAndAText(void) {
  for (int status = -25; status <= 10; status++) {
    bool is_known = status >= -19 && status <= 5;
    bool is_unknown_name = strcmp(cbr_status_name(status), "unknown") == 0;
    bool is_unknown_text =
        strcmp(cbr_status_text(status), "unknown status") == 0;
    CHECK(is_known != is_unknown_name);
    CHECK(is_known != is_unknown_text);
  }
  CHECK(strcmp(cbr_status_name(CBR_E_USER), "CBR_E_USER") == 0);
  CHECK(strcmp(cbr_status_name(INT_MIN), "unknown") == 0);
  CHECK(strcmp(cbr_status_text(INT_MAX), "unknown status") == 0);
}

/* ------------------------------------------------------------- registry -- */

/* Whether such options are refused so, and nothing is given out. */
static void bad_options(const cbr_registry_options *options,
                        cbr_status expected, const char *sentence) {
  cbr_registry registry = 1;
  cbr_status status = cbr_registry_open(options, &registry);
  expect_refused(expected, status, sentence);
  EQUAL(CBR_NONE, registry);
  if (status == CBR_OK) close_registry(registry);
}

static void bad_option(void (*spoil)(cbr_registry_options *),
                       const char *sentence) {
  WITHIN("options: %s", sentence);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  spoil(&options);
  bad_options(&options, CBR_E_INVALID, sentence);
}

static void no_size(cbr_registry_options *o) { o->size = 0; }
static void short_size(cbr_registry_options *o) { o->size -= 1; }
static void huge_size(cbr_registry_options *o) { o->size = SIZE_MAX; }
static void long_label(cbr_registry_options *o) { o->label = text_of(256); }
static void bad_level(cbr_registry_options *o) { o->level = 4; }
static void bad_strictness(cbr_registry_options *o) { o->strictness = 2; }
static void odd_ring(cbr_registry_options *o) { o->ring_bytes = 5000; }
static void small_ring(cbr_registry_options *o) { o->ring_bytes = 2048; }
static void large_ring(cbr_registry_options *o) { o->ring_bytes = 2u << 30; }
static void odd_calls(cbr_registry_options *o) { o->calls_overflow = 5; }
static void counted_events(cbr_registry_options *o) {
  o->events_overflow = CBR_OVERFLOW_COUNT;
}
static void few_bytes(cbr_registry_options *o) { o->max_bytes = 4095; }
static void few_calls(cbr_registry_options *o) { o->max_calls = 9999; }
static void few_events(cbr_registry_options *o) { o->max_events = 1; }
static void empty_path(cbr_registry_options *o) { o->history_path = ""; }
static void useless_rings(cbr_registry_options *o) {
  o->ring_directory = P_tmpdir;
}
static void empty_rings(cbr_registry_options *o) {
  o->history_path = "/nowhere/history";
  o->ring_directory = "";
}

static void G6_badOptionsOpenNothing(void) {
  EXPECT(CBR_E_INVALID, cbr_registry_open(NULL, NULL));
  CHECK(strstr(cbr_last_error(), "out is NULL") != NULL);
  bad_option(no_size, "options.size");
  bad_option(short_size, "options.size");
  bad_option(huge_size, "options.size");
  bad_option(long_label, "label is 256 bytes; the limit is 255");
  bad_option(bad_level, "level is 4");
  bad_option(bad_strictness, "strictness");
  bad_option(odd_ring, "ring_bytes");
  bad_option(small_ring, "ring_bytes");
  bad_option(large_ring, "ring_bytes");
  bad_option(odd_calls, "calls_overflow");
  bad_option(counted_events, "events_overflow");
  bad_option(few_bytes, "max_bytes");
  bad_option(few_calls, "max_calls");
  bad_option(few_events, "max_events");
  bad_option(empty_path, "history_path");
  bad_option(useless_rings, "ring_directory");
  bad_option(empty_rings, "ring_directory");
  LONGER(cbr_registry_options) longer = {CBR_REGISTRY_OPTIONS_INIT, {0}};
  LENGTHEN(longer, 1);
  bad_options(&longer.known, CBR_E_INVALID, "options.size");
  /* A newer program's structure that uses nothing new. */
  cbr_registry registry;
  LENGTHEN(longer, 0);
  longer.known.label = text_of(255);
  EXPECT(CBR_OK, cbr_registry_open(&longer.known, &registry));
  close_registry(registry);
}

static void G6_badStatisticsAndVisitors(void) {
  make_scene(CBR_LEVEL_CALLS);
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  BAD(INVALID, "out is NULL", cbr_registry_statistics(scene.registry, NULL));
  statistics.size = 0;
  BAD(INVALID, "out->size",
      cbr_registry_statistics(scene.registry, &statistics));
  statistics.size = sizeof statistics - 1;
  BAD(INVALID, "out->size",
      cbr_registry_statistics(scene.registry, &statistics));
  LONGER(cbr_statistics) longer = {CBR_STATISTICS_INIT, {0}};
  LENGTHEN(longer, 1);
  BAD(INVALID, "out->size",
      cbr_registry_statistics(scene.registry, &longer.known));
  LENGTHEN(longer, 0);
  EXPECT(CBR_OK, cbr_registry_statistics(scene.registry, &longer.known));
  EQUAL(2, longer.known.live_tokens);
  EQUAL(sizeof longer, longer.known.size);
  BAD(INVALID, "visit is NULL",
      cbr_registry_each_live(scene.registry, NULL, NULL));
  BAD(INVALID, "visit is NULL", cbr_impact(scene.token, NULL, NULL));
  BAD(INVALID, "visit is NULL", cbr_impact(scene.owner, NULL, NULL));
  end_scene();
}

/* A name that leaves no room for those of the files beside it, and a path that
 * leaves none for the reason: nothing is made, and the reason is told. */
static void J4_aHistoryWithTooLongAName(void) {
  const size_t lengths[] = {248, 255, 5000};
  make_scene(CBR_LEVEL_OFF);
  for (int each = 0; each < 3; each++) {
    char path[5100];
    snprintf(path, sizeof path, "%s/%s", P_tmpdir, text_of(lengths[each]));
    cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
    options.history_path = path;
    cbr_registry registry = 1;
    BAD(AUDIT, "its name is too long", cbr_registry_open(&options, &registry));
    EQUAL(CBR_NONE, registry);
    CHECK(access(path, F_OK) != 0);
  }
  end_scene();
}

/* ---------------------------------------------------------- registering -- */

/* Whether such a registration is refused so; see bad_options. */
static cbr_status try_register(const cbr_registration *what) {
  cbr_token token = 1;
  cbr_status status = cbr_register(scene.registry, what, &token);
  if (status != CBR_OK) EQUAL(CBR_NONE, token);
  return status;
}

static void G6_aBadRegistrationTakesNothing(void) {
  make_scene(CBR_LEVEL_CALLS);
  cbr_registration what = good();
  cbr_token token = 1;
  BAD(INVALID, "out is NULL", cbr_register(scene.registry, &what, NULL));
  BAD(INVALID, "what is NULL", cbr_register(scene.registry, NULL, &token));
  EQUAL(CBR_NONE, token);
#define BAD_FIELD(status, sentence, change) \
  what = good();                            \
  change;                                   \
  BAD(status, sentence, try_register(&what))
  BAD_FIELD(INVALID, "what->size", what.size = 0);
  BAD_FIELD(INVALID, "what->size", what.size--);
  BAD_FIELD(INVALID, "what->size", what.size = SIZE_MAX);
  BAD_FIELD(INVALID, "what->reserved", what.reserved = 1);
  BAD_FIELD(INVALID, "label is 256 bytes", what.label = text_of(256));
  BAD_FIELD(INVALID, "label is 4080 or more bytes",
            what.label = text_of(8000));
  BAD_FIELD(INVALID, "byte 1 of label is 10; it must be UTF-8 without control",
            what.label = "a\nforged: line");
  BAD_FIELD(INVALID, "byte 0 of label is 27", what.label = "\x1b[2J");
  BAD_FIELD(INVALID, "byte 2 of label is 127", what.label = "ab\x7f");
  BAD_FIELD(INVALID, "byte 9 of label is 10", what.label = "ten bytes\n");
  BAD_FIELD(INVALID, "byte 7 of label is 127", what.label = "eight b\x7f");
  BAD_FIELD(INVALID, "byte 12 of label is 255", what.label = "twelve bytes\xff");
  BAD_FIELD(INVALID, "byte 0 of label is 255", what.label = "\xff");
  BAD_FIELD(INVALID, "byte 0 of label is 192", what.label = "\xc0\xaf");
  BAD_FIELD(INVALID, "byte 0 of label is 237", what.label = "\xed\xa0\x80");
  BAD_FIELD(INVALID, "byte 1 of label is 226", what.label = "a\xe2\x82");
  BAD_FIELD(INVALID, "byte 0 of label is 244",
            what.label = "\xf4\x90\x80\x80");
  BAD_FIELD(INVALID, "file is 1024 bytes", what.file = text_of(1024));
  BAD_FIELD(INVALID, "flags has unknown bits 0x0000000000000004",
            what.flags = 4 | CBR_ONE_SHOT);
  BAD_FIELD(INVALID, "level is 4", what.level = 4);
  BAD_FIELD(INVALID, "function is NULL", what.function = NULL);
  BAD_FIELD(INVALID, "function and interface",
            (what.interface = &interface, what.methods = table));
  BAD_FIELD(INVALID, "without an interface", what.methods = table);
  BAD_FIELD(INVALID, "owner", what.owner = 3);
  BAD_FIELD(KIND, "token 0x", what.owner = scene.token);
  BAD_FIELD(KIND, "registry 0x", what.owner = scene.registry);
  cbr_owner owner = add_owner(scene.registry, "ended owner");
  EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  BAD_FIELD(STALE, "owner 0x", what.owner = owner);
  LONGER(cbr_registration) longer = {good(), {0}};
  LENGTHEN(longer, 1);
  BAD(INVALID, "what->size", try_register(&longer.known));
  LENGTHEN(longer, 0);
  longer.known.label = text_of(255);
  EXPECT(CBR_OK, cbr_register(scene.registry, &longer.known, &token));
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(1, destroyed(&scene.context));
  scene.context.destroyed = 0;
  end_scene();
}

static void G6_aBadInterfaceTakesNothing(void) {
  make_scene(CBR_LEVEL_CALLS);
  cbr_interface face;
  cbr_method list[2];
  cbr_function functions[2];
  cbr_registration what;
#define BAD_FACE(status, sentence, change)               \
  what = good_with_methods();                            \
  face = interface;                                      \
  memcpy(list, methods, sizeof list);                    \
  memcpy(functions, table, sizeof functions);            \
  face.name = "bad";                                     \
  face.methods = list;                                   \
  what.interface = &face;                                \
  what.methods = functions;                              \
  change;                                                \
  BAD(status, sentence, try_register(&what))
  BAD_FACE(INVALID, "interface->size", face.size = 0);
  BAD_FACE(INVALID, "interface->size", face.size--);
  BAD_FACE(INVALID, "interface's name is NULL", face.name = NULL);
  BAD_FACE(INVALID, "interface name is 256 bytes", face.name = text_of(256));
  BAD_FACE(INVALID, "interface's methods is NULL", face.methods = NULL);
  BAD_FACE(INVALID, "0 methods; it can have 1 to 256", face.count = 0);
  BAD_FACE(INVALID, "257 methods; it can have 1 to 256", face.count = 257);
  BAD_FACE(INVALID, "method's name is NULL", list[1].name = NULL);
  BAD_FACE(INVALID, "method name is 256 bytes", list[1].name = text_of(256));
  BAD_FACE(INVALID, "method's flags", list[1].flags = 4);
  BAD_FACE(INVALID, "methods is NULL", what.methods = NULL);
  BAD_FACE(INVALID, "\"required\" of interface \"bad\"", functions[0] = NULL);
  BAD_FACE(INVALID, "type_tag", what.type_tag = 1);
  /* Other methods under a name and version that are known. */
#define BAD_KNOWN(change)                                        \
  BAD_FACE(INTERFACE, "\"input\" version 1",                     \
           (face.name = "input", (change)))
  BAD_KNOWN(face.count = 1);
  BAD_KNOWN(list[0].name = "requires");
  BAD_KNOWN(list[1].name = "optional2");
  BAD_KNOWN(list[1].flags = 0);
  BAD_KNOWN(list[1].default_disposition = 6);
  /* What was copied before another fault was found is given back. */
  cbr_owner owner = add_owner(scene.registry, "dead");
  EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  BAD_FACE(STALE, "owner 0x", what.owner = owner);
  /* Another version is another interface; equal lists are the same. */
  cbr_token token;
  what = good_with_methods();
  face.version = 2;
  what.interface = &face;
  EXPECT(CBR_OK, cbr_register(scene.registry, &what, &token));
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  LONGER(cbr_interface) longer = {interface, {0}};
  LENGTHEN(longer, 1);
  what.interface = &longer.known;
  BAD(INVALID, "interface->size", try_register(&what));
  LENGTHEN(longer, 0);
  EXPECT(CBR_OK, cbr_register(scene.registry, &what, &token));
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(2, destroyed(&scene.context));
  scene.context.destroyed = 0;
  end_scene();
}

/* C15: no context and no destroy are fine; so is no label. */
static void C15_whatMayBeNull(void) {
  cbr_registry registry = open_registry(NULL, CBR_LEVEL_CALLS);
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_owner owner;
  what.function = (cbr_function)nothing;
  what.file = NULL;
  what.line = 0;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  EXPECT(CBR_OK, cbr_owner_create(registry, NULL, &owner));
  EXPECT(CBR_OK, cbr_owner_create_child(owner, NULL, &owner));
  EXPECT(CBR_OK, cbr_owner_for_object(registry, &scene, NULL, &owner));
  CHECK(calls(token));
  EXPECT(CBR_OK, cbr_explain(token, NULL, 0, NULL));
  EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, ""));
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_RING, 0, NULL));
  close_registry(registry);
}

/* -------------------------------------------------------------- calling -- */

static void G10_badCallsAreRefused(void) {
  make_scene(CBR_LEVEL_CALLS);
  cbr_call call = CBR_CALL_INIT;
  cbr_interface other = interface;
  other.name = "other";
  cbr_interface broken = interface;
  broken.size = 1;
  BAD(INVALID, "call is NULL", cbr_enter(scene.token, NULL));
  BAD(INVALID, "call is NULL", cbr_enter_typed(scene.token, 0, NULL));
  BAD(INVALID, "call is NULL",
      cbr_enter_method(scene.with_methods, &interface, 0, NULL));
  BAD(INVALID, "interface is NULL",
      cbr_enter_method(scene.with_methods, NULL, 0, &call));
  BAD(INVALID, "interface->size",
      cbr_enter_method(scene.with_methods, &broken, 0, &call));
  BAD(INVALID, "method is 2",
      cbr_enter_method(scene.with_methods, &interface, 2, &call));
  BAD(INTERFACE, "token 0x",
      cbr_enter_method(scene.with_methods, &other, 0, &call));
  BAD(INTERFACE, "token 0x",
      cbr_enter_method(scene.token, &interface, 0, &call));
  BAD(INTERFACE, "token 0x", cbr_enter(scene.with_methods, &call));
  BAD(INTERFACE, "token 0x", cbr_enter_typed(scene.token, 7, &call));
  BAD(INTERFACE, "token 0x", cbr_enter_typed(scene.with_methods, 0, &call));
  BAD(INVALID, "interface is NULL",
      cbr_responds(scene.with_methods, NULL, 0));
  BAD(INVALID, "interface->size",
      cbr_responds(scene.with_methods, &broken, 0));
  BAD(INVALID, "method is 2",
      cbr_responds(scene.with_methods, &interface, 2));
  BAD(INTERFACE, "token 0x", cbr_responds(scene.with_methods, &other, 0));
  BAD(INVALID, "out is NULL", cbr_lease(scene.token, NULL));
  BAD(INVALID, "call is NULL", cbr_lease_get(scene.lease, NULL));
  BAD(INVALID, "call is NULL", cbr_leave(NULL));
  BAD(INVALID, "not inside", cbr_leave(&call));
  BAD(INVALID, "mark is 1", cbr_unwind(1));
  BAD(INVALID, "mark is 18446744073709551615", cbr_unwind(SIZE_MAX));
  end_scene();
}

/* --------------------------------------------------- owners and history -- */

static void G6_badOwnersAreNotMade(void) {
  make_scene(CBR_LEVEL_CALLS);
  cbr_owner owner = 1;
  const char *label = text_of(256);
  BAD(INVALID, "out is NULL", cbr_owner_create(scene.registry, "x", NULL));
  BAD(INVALID, "out is NULL", cbr_owner_create_child(scene.owner, "x", NULL));
  BAD(INVALID, "out is NULL",
      cbr_owner_for_object(scene.registry, &scene, "x", NULL));
  BAD(INVALID, "label is 256 bytes",
      cbr_owner_create(scene.registry, label, &owner));
  EQUAL(CBR_NONE, owner);
  owner = 1;
  BAD(INVALID, "label is 256 bytes",
      cbr_owner_create_child(scene.owner, label, &owner));
  EQUAL(CBR_NONE, owner);
  owner = 1;
  BAD(INVALID, "label is 256 bytes",
      cbr_owner_for_object(scene.registry, &scene, label, &owner));
  EQUAL(CBR_NONE, owner);
  owner = 1;
  BAD(INVALID, "object is NULL",
      cbr_owner_for_object(scene.registry, NULL, "x", &owner));
  EQUAL(CBR_NONE, owner);
  BAD(INVALID, "object is NULL", cbr_object_died(scene.registry, NULL));
  end_scene();
}

static void G6_badWishesOfTheHistory(void) {
  make_scene(CBR_LEVEL_CALLS);
  uint64_t kept = 1;
  BAD(INVALID, "level is 0", cbr_audit_level(scene.registry, 0));
  BAD(INVALID, "level is 4", cbr_audit_level(scene.registry, 4));
  BAD(INVALID, "level is 4", cbr_audit_level(scene.token, 4));
  BAD(INVALID, "text is NULL",
      cbr_audit_note(scene.registry, CBR_NONE, NULL));
  BAD(INVALID, "text is 4096 bytes; the limit is 4095",
      cbr_audit_note(scene.registry, CBR_NONE, text_of(4096)));
  EXPECT(CBR_OK, cbr_audit_note(scene.registry, CBR_NONE, text_of(4095)));
  EXPECT(CBR_OK, cbr_audit_note(scene.registry, CBR_NONE,
                                "gr\xc3\xbc\xc3\x9f\n\t\xf0\x9f\x98\x80"));
  BAD(INVALID, "byte 1 of text is 252; it must be UTF-8",
      cbr_audit_note(scene.registry, CBR_NONE, "a\xfc" "b"));
  BAD(INVALID, "0x0000000000000003",
      cbr_audit_note(scene.registry, 3, "note"));
  BAD(INVALID, "level",
      cbr_audit_flush(scene.registry, 0, CBR_FOREVER, &kept));
  EQUAL(0, kept);
  BAD(INVALID, "level", cbr_audit_flush(scene.registry, 4, 0, NULL));
  end_scene();
}

/* The text is cut at any size, and never written past. */
static void G1_explainFitsAnySize(void) {
  make_scene(CBR_LEVEL_CALLS);
  size_t needed = 0;
  EXPECT(CBR_OK, cbr_explain(scene.token, NULL, 0, &needed));
  CHECK(needed > 100 && needed < 4000);
  BAD(INVALID, "text is NULL", cbr_explain(scene.token, NULL, 10, &needed));
  EQUAL(0, needed);
  char whole[4096], text[4096];
  EXPECT(CBR_OK, cbr_explain(scene.token, whole, SIZE_MAX, &needed));
  EQUAL(strlen(whole) + 1, needed);
  /* The ages in it make it a little longer or shorter. */
  for (size_t size = 1; size < needed - 20; size++) {
    memset(text, 'z', sizeof text);
    EXPECT(CBR_E_FULL, cbr_explain(scene.token, text, size, NULL));
    EQUAL(size - 1, strlen(text));
    CHECK(strncmp(text, whole, 40 < size ? 40 : size - 1) == 0);
    CHECK(text[size] == 'z');
    if (size > 60) size += 13;
  }
  end_scene();
}

/* ---------------------------------------------------- paths that cannot -- */

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(text, file) >= 0);
  if (file) fclose(file);
}

/* Opens with a path, and expects the history's refusal. */
static void bad_path(const char *path, const char *sentence) {
  WITHIN("history_path %s", sentence);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = path;
  bad_options(&options, CBR_E_AUDIT, sentence);
}

static void G6_aPathThatCannotBeOpenedIsLeftAlone(void) {
  char folder[] = "input-XXXXXX";
  char path[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/missing/history.db", folder);
  bad_path(path, "missing");
  bad_path(folder, folder);
  bad_path("/proc/version", "/proc/version");
  /* No database. */
  snprintf(path, sizeof path, "%s/text", folder);
  static const char prose[] = "This is a letter, and not a database at all.\n"
                              "It is long enough to have a header's length, "
                              "which is one hundred bytes.\n";
  write_file(path, prose);
  bad_path(path, "not an SQLite database");
  char content[sizeof prose + 8] = "";
  FILE *file = fopen(path, "r");
  CHECK(file && fread(content, 1, sizeof content - 1, file) > 0);
  if (file) fclose(file);
  CHECK(strcmp(content, prose) == 0);
  CHECK(remove(path) == 0);
  CHECK(rmdir(folder) == 0);
}

/* -------------------------------------------------------- out of memory -- */

/* Tries a function with the first allocation failing, then the second, until
 * none is left to fail. Counts the failures. */
static int fail_each(const char *name, cbr_status (*attempt)(void)) {
  for (int after = 0; after < 200; after++) {
    WITHIN("%s, allocation %d", name, after);
    struct state before = state_now();
    cbr_test_fail_allocation(after);
    cbr_status status = attempt();
    cbr_test_fail_allocation(-1);
    if (status == CBR_OK) return after;
    EXPECT(CBR_E_NOMEM, status);
    CHECK(strstr(cbr_last_error(), "out of memory") != NULL);
    expect_same(&before);
    if (status != CBR_E_NOMEM) return -1;
  }
  CHECK(!"it never succeeds");
  return -1;
}

/* Something that was not said before, so that it has to be remembered. */
static const char *new_text(void) {
  static char text[64];
  static int number;
  snprintf(text, sizeof text, "text %d", number++);
  return text;
}

static cbr_token made; /* by the last attempt that succeeded */

static cbr_status register_new(void) {
  cbr_registration what = good();
  what.label = new_text();
  cbr_token token = 1;
  cbr_status status = cbr_register(scene.registry, &what, &token);
  if (status != CBR_OK) EQUAL(CBR_NONE, token);
  made = token;
  return status;
}

static cbr_status register_at_new_site(void) {
  cbr_registration what = good();
  char file[64];
  snprintf(file, sizeof file, "%s.c", new_text());
  what.file = file;
  return cbr_register(scene.registry, &what, &made);
}

static cbr_status register_new_interface(void) {
  cbr_registration what = good_with_methods();
  cbr_interface face = interface;
  char label[64];
  snprintf(label, sizeof label, "%s", new_text());
  what.label = label;
  face.name = new_text();
  what.interface = &face;
  return cbr_register(scene.registry, &what, &made);
}

static cbr_status register_known_interface(void) {
  cbr_registration what = good_with_methods();
  what.label = new_text();
  return cbr_register(scene.registry, &what, &made);
}

static cbr_status open_new(void) {
  cbr_registry registry = 1;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.level = CBR_LEVEL_OFF;
  options.label = "opened";
  cbr_status status = cbr_registry_open(&options, &registry);
  if (status == CBR_OK) return cbr_registry_close(registry, CBR_FOREVER);
  EQUAL(CBR_NONE, registry);
  return status;
}

static cbr_status create_owner(void) {
  cbr_owner owner = 1;
  cbr_status status = cbr_owner_create(scene.registry, new_text(), &owner);
  if (status != CBR_OK) EQUAL(CBR_NONE, owner);
  made = owner;
  return status;
}

static cbr_status create_child(void) {
  return cbr_owner_create_child(scene.owner, new_text(), &made);
}

static char objects[64];

/* Of more and more objects, so that their table grows, too. */
static cbr_status own_object(void) {
  static int next;
  cbr_owner owner = 1;
  cbr_status status = cbr_owner_for_object(scene.registry, &objects[next],
                                           new_text(), &owner);
  if (status == CBR_OK) next = (next + 1) % (int)sizeof objects;
  else EQUAL(CBR_NONE, owner);
  made = owner;
  return status;
}

static cbr_status lease(void) {
  cbr_lease_handle lease = 1;
  cbr_status status = cbr_lease(scene.token, &lease);
  if (status != CBR_OK) EQUAL(CBR_NONE, lease);
  made = lease;
  return status;
}

/* Until there is no free slot left, so that the next one needs memory. */
static void fill_slots(void) {
  cbr_statistics now = statistics_of(scene.registry);
  uint64_t used = 1 + now.live_tokens + now.live_owners + now.live_leases;
  for (; used < now.slots; used++)
    EXPECT(CBR_OK, cbr_owner_create(scene.registry, "filler", &made));
}

static void expect_failures(int least, const char *name,
                            cbr_status (*attempt)(void)) {
  int failures = fail_each(name, attempt);
  CHECK(failures >= least);
}

/* Takes all slots that closed registries have left behind, so that new ones
 * need memory. The second time there are those of the first. */
enum { TAKERS = 64 };
static cbr_registry takers[2 * TAKERS];
static int taken;

static void take_what_is_left(void) {
  taken += TAKERS;
  for (int i = 0; i < taken; i++)
    takers[i] = open_registry("taker", CBR_LEVEL_OFF);
}

static void fail_every_allocation(uint32_t level) {
  make_scene(level);
  expect_failures(1, "register", register_new);
  EXPECT(CBR_OK, cbr_invalidate_wait(made, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, destroyed(&scene.context));
  expect_failures(1, "register at a new site", register_at_new_site);
  expect_failures(5, "register a new interface", register_new_interface);
  expect_failures(1, "register a known interface", register_known_interface);
  expect_failures(4, "open", open_new);
  expect_failures(1, "owner_create", create_owner);
  expect_failures(1, "owner_create_child", create_child);
  for (int i = 0; i < 40; i++)
    expect_failures(1, "owner_for_object", own_object);
  expect_failures(0, "lease", lease);
  EXPECT(CBR_OK, cbr_lease_end(made));
  take_what_is_left();
  fill_slots();
  expect_failures(1, "lease that needs a slot", lease);
  EXPECT(CBR_OK, cbr_lease_end(made));
  fill_slots();
  expect_failures(2, "register that needs a slot", register_new);
  fill_slots();
  expect_failures(2, "owner that needs a slot", create_owner);
  scene.context.destroyed = 0;
  EXPECT(CBR_OK, cbr_lease_end(scene.lease));
  CHECK(calls(scene.token));
  close_registry(scene.registry);
  for (int i = 0; i < taken; i++) close_registry(takers[i]);
  EQUAL(2 + 4, destroyed(&scene.context));
}

static void G6_everyAllocationMayFail(void) {
  fail_every_allocation(CBR_LEVEL_OFF);
  fail_every_allocation(CBR_LEVEL_CALLS);
}

/* What ends something has no use for memory. */
static void G7_endingNeedsNoMemory(void) {
  make_scene(CBR_LEVEL_OFF);
  for (int after = 0; after < 8; after++) {
    WITHIN("allocation %d", after);
    struct counted context = {0};
    cbr_owner owner = add_owner(scene.registry, "owner");
    cbr_token tokens[3];
    for (int i = 0; i < 3; i++)
      tokens[i] = add(scene.registry, "x", &context, true, owner);
    cbr_lease_handle lease;
    cbr_call call;
    EXPECT(CBR_OK, cbr_lease(tokens[1], &lease));
    EXPECT(CBR_OK, cbr_enter(tokens[2], &call));
    cbr_test_fail_allocation(after);
    cbr_status ended = cbr_invalidate(tokens[0], CBR_REASON_ENDED);
    cbr_status owner_ended = cbr_invalidate(owner, CBR_REASON_ENDED);
    cbr_status left = cbr_leave(&call);
    cbr_status lease_ended = cbr_lease_end(lease);
    cbr_test_fail_allocation(-1);
    EXPECT(CBR_OK, ended);
    EXPECT(CBR_DEFERRED, owner_ended);
    EXPECT(CBR_OK, left);
    EXPECT(CBR_OK, lease_ended);
    EQUAL(3, destroyed(&context));
  }
  cbr_test_fail_allocation(0);
  EXPECT(CBR_OK, cbr_lease_end(scene.lease));
  cbr_status closed = cbr_registry_close(scene.registry, CBR_FOREVER);
  cbr_test_fail_allocation(-1);
  EXPECT(CBR_OK, closed);
  EQUAL(2, destroyed(&scene.context));
}

/* Calls past those that a thread has room for need memory; what they hold is
 * let go without any. In a child, whose thread has never been so deep. */
static void enter_deeply(void) {
  cbr_registry registry = open_registry("deep", CBR_LEVEL_OFF);
  struct counted context = {0}, bottom = {0};
  cbr_token token = add(registry, "bottom", &bottom, true, CBR_NONE);
  cbr_token each = add(registry, "each", &context, false, CBR_NONE);
  enum { DEPTH = 40 };
  cbr_call calls[DEPTH];
  int refused = 0;
  EXPECT(CBR_OK, cbr_enter(token, &calls[0]));
  for (int depth = 1; depth < DEPTH; depth++) {
    WITHIN("depth %d", depth);
    cbr_test_fail_allocation(0);
    cbr_status status = cbr_enter(each, &calls[depth]);
    cbr_test_fail_allocation(-1);
    if (status == CBR_OK) continue;
    refused++;
    EXPECT(CBR_E_NOMEM, status);
    CHECK(calls[depth].function == NULL);
    EQUAL(depth, cbr_mark());
    EXPECT(CBR_OK, cbr_enter(each, &calls[depth]));
  }
  CHECK(refused > 0);
  for (int depth = DEPTH - 1; depth > 0; depth--)
    EXPECT(CBR_OK, cbr_leave(&calls[depth]));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_leave(&calls[0]));
  EQUAL(1, destroyed(&bottom));
  close_registry(registry);
}

static void G11_deepCallsMayFindNoMemory(void) {
  CHECK(holds_in_child(enter_deeply));
}

/* The first of many calls is left while the others go on, at a depth where
 * whatever the library does needs a pin of its own: without memory the destroy
 * is not lost. */
static int depth_of_child;

static void leave_below(void) {
  cbr_registry registry = open_registry("deep", CBR_LEVEL_OFF);
  struct counted context = {0}, bottom = {0};
  cbr_token token = add(registry, "bottom", &bottom, true, CBR_NONE);
  cbr_token each = add(registry, "each", &context, false, CBR_NONE);
  cbr_call calls[40];
  EXPECT(CBR_OK, cbr_enter(token, &calls[0]));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  for (int depth = 1; depth < depth_of_child; depth++)
    EXPECT(CBR_OK, cbr_enter(each, &calls[depth]));
  cbr_test_fail_allocation(0);
  cbr_status left = cbr_leave(&calls[0]);
  cbr_test_fail_allocation(-1);
  EXPECT(CBR_OK, left);
  EQUAL(1, destroyed(&bottom));
  for (int depth = 1; depth < depth_of_child; depth++)
    EXPECT(CBR_OK, cbr_leave(&calls[depth]));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  close_registry(registry);
}

/* Likewise when a lease ends there, an owner dies, a one-shot is entered. */
static void end_deeply(void) {
  cbr_registry registry = open_registry("deep", CBR_LEVEL_OFF);
  struct counted context = {0}, other = {0};
  cbr_token each = add(registry, "each", &context, false, CBR_NONE);
  cbr_token leased = add(registry, "leased", &other, true, CBR_NONE);
  cbr_owner owner = add_owner(registry, "owner");
  (void)add(registry, "owned", &other, true, owner);
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = (cbr_function)count_call;
  what.context = &other;
  what.destroy = count_destroy;
  what.flags = CBR_ONE_SHOT;
  cbr_token one_shot;
  EXPECT(CBR_OK, cbr_register(registry, &what, &one_shot));
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(leased, &lease));
  EXPECT(CBR_PENDING, cbr_invalidate(leased, CBR_REASON_ENDED));
  cbr_call calls[40], call;
  for (int depth = 0; depth < depth_of_child; depth++)
    EXPECT(CBR_OK, cbr_enter(each, &calls[depth]));
#define WITHOUT_MEMORY(status, expression) \
  cbr_test_fail_allocation(0);             \
  cbr_status status = (expression);        \
  cbr_test_fail_allocation(-1);            \
  if (status != CBR_OK) EXPECT(CBR_E_NOMEM, status);
  WITHOUT_MEMORY(lease_ended, cbr_lease_end(lease));
  EQUAL(lease_ended == CBR_OK, destroyed(&other));
  if (lease_ended != CBR_OK) EXPECT(CBR_OK, cbr_lease_end(lease));
  EQUAL(1, destroyed(&other));
  WITHOUT_MEMORY(owner_ended, cbr_invalidate(owner, CBR_REASON_ENDED));
  EQUAL(owner_ended == CBR_OK ? 2 : 1, destroyed(&other));
  if (owner_ended != CBR_OK)
    EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  EQUAL(2, destroyed(&other));
  WITHOUT_MEMORY(entered, cbr_enter(one_shot, &call));
  if (entered != CBR_OK) EXPECT(CBR_OK, cbr_enter(one_shot, &call));
  EQUAL(2, destroyed(&other));
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(3, destroyed(&other));
  for (int depth = 0; depth < depth_of_child; depth++)
    EXPECT(CBR_OK, cbr_leave(&calls[depth]));
  close_registry(registry);
}

static void G7_noDestroyIsLostForWantOfMemory(void) {
  for (depth_of_child = 12; depth_of_child < 20; depth_of_child++) {
    WITHIN("depth %d", depth_of_child);
    CHECK(holds_in_child(leave_below));
    CHECK(holds_in_child(end_deeply));
  }
}

/* Does not use the library, as CHECK does for its message. */
static void expect_quietly(bool holds, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: does not hold\n", __FILE__, line);
  fail_();
}

/* A thread's first use of the library needs memory, too. In a child no thread
 * has used it; with memory the answer to these would be another one. */
static void use_first_without_memory(void) {
  cbr_call call, empty = CBR_CALL_INIT;
  cbr_registration what = good();
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  cbr_handle handle = 1;
  uint64_t kept = 1;
  size_t needed = 1;
  char text[8] = "dirty";
  memset(&call, 0xAA, sizeof call);
  /* Nothing here may use the library but the call that is to fail. */
#define FIRST(expression)              \
  do {                                 \
    cbr_test_fail_allocation(0);       \
    EXPECT(CBR_E_NOMEM, (expression)); \
    EQUAL(CBR_NONE, handle);           \
    handle = 1;                        \
  } while (0)
#define FIRST_WITHOUT_OUT(expression) \
  handle = CBR_NONE;                  \
  FIRST(expression)
  FIRST(cbr_registry_open(NULL, &handle));
  FIRST(cbr_register(scene.registry, &what, &handle));
  FIRST(cbr_lease(scene.token, &handle));
  FIRST(cbr_owner_create(scene.registry, "x", &handle));
  FIRST(cbr_owner_create_child(scene.owner, "x", &handle));
  FIRST(cbr_owner_for_object(scene.registry, &scene, "x", &handle));
  FIRST_WITHOUT_OUT(cbr_enter(scene.token, &call));
  expect_quietly(memcmp(&call, &empty, sizeof call) == 0, __LINE__);
  FIRST_WITHOUT_OUT(cbr_enter_typed(scene.token, 0, &call));
  FIRST_WITHOUT_OUT(cbr_enter_method(scene.token, &interface, 0, &call));
  FIRST_WITHOUT_OUT(cbr_leave(&call));
  FIRST_WITHOUT_OUT(cbr_responds(scene.token, &interface, 0));
  FIRST_WITHOUT_OUT(cbr_lease_get(scene.lease, &call));
  FIRST_WITHOUT_OUT(cbr_lease_end(scene.lease));
  FIRST_WITHOUT_OUT(cbr_unwind(0));
  FIRST_WITHOUT_OUT(cbr_invalidate(scene.token, CBR_REASON_ENDED));
  FIRST_WITHOUT_OUT(cbr_invalidate_wait(scene.token, CBR_REASON_ENDED, 0));
  FIRST_WITHOUT_OUT(cbr_explain(scene.token, text, sizeof text, &needed));
  expect_quietly(text[0] == 0 && needed == 0, __LINE__);
  FIRST_WITHOUT_OUT(cbr_impact(scene.token, NULL, NULL));
  FIRST_WITHOUT_OUT(cbr_object_died(scene.registry, &scene));
  FIRST_WITHOUT_OUT(cbr_registry_statistics(scene.registry, &statistics));
  FIRST_WITHOUT_OUT(cbr_registry_each_live(scene.registry, NULL, NULL));
  FIRST_WITHOUT_OUT(cbr_registry_close(scene.registry, 0));
  FIRST_WITHOUT_OUT(cbr_audit_level(scene.token, CBR_LEVEL_OFF));
  FIRST_WITHOUT_OUT(cbr_audit_note(scene.registry, CBR_NONE, "x"));
  FIRST_WITHOUT_OUT(cbr_audit_flush(scene.registry, 1, 0, &kept));
  expect_quietly(kept == 0, __LINE__);
  cbr_test_fail_allocation(0);
  expect_quietly(cbr_registry_shared() == CBR_NONE, __LINE__);
  cbr_test_fail_allocation(0);
  expect_quietly(strncmp(cbr_last_error(), "out of memory", 13) == 0, __LINE__);
  cbr_test_fail_allocation(0);
  /* These need none. */
  expect_quietly(!cbr_is_live(scene.token) && cbr_mark() == 0, __LINE__);
  expect_quietly(strcmp(cbr_version(), CBR_VERSION) == 0, __LINE__);
  cbr_test_fail_allocation(-1);
  EXPECT(CBR_E_FORKED, cbr_enter(scene.token, &call));
  close_registry(open_registry("later", CBR_LEVEL_OFF));
}

static void C10_aThreadsFirstUseMayFindNoMemory(void) {
  make_scene(CBR_LEVEL_OFF);
  struct state before = state_now();
  CHECK(holds_in_child(use_first_without_memory));
  expect_same(&before);
  end_scene();
}

int main(void) {
  TEST(C10_anyNumberHasANameAndAText);
  TEST(G6_badOptionsOpenNothing);
  TEST(G6_badStatisticsAndVisitors);
  TEST(J4_aHistoryWithTooLongAName);
  TEST(G6_aBadRegistrationTakesNothing);
  TEST(G6_aBadInterfaceTakesNothing);
  TEST(C15_whatMayBeNull);
  TEST(G10_badCallsAreRefused);
  TEST(G6_badOwnersAreNotMade);
  TEST(G6_badWishesOfTheHistory);
  TEST(G1_explainFitsAnySize);
  TEST(G6_aPathThatCannotBeOpenedIsLeftAlone);
  TEST(G6_everyAllocationMayFail);
  TEST(G7_endingNeedsNoMemory);
  TEST(G11_deepCallsMayFindNoMemory);
  TEST(G7_noDestroyIsLostForWantOfMemory);
  TEST(C10_aThreadsFirstUseMayFindNoMemory);
  return finish();
}
