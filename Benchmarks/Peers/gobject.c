// SPDX-License-Identifier: Apache-2.0
//
// GLib: a GWeakRef that is taken for the time of a call, and a signal.
#include <glib-object.h>

#include "../harness.h"

// Padded, so that two objects share no cache line.
typedef struct { GObject parent; char apart[104]; } Subject;
typedef struct { GObjectClass parent; } SubjectClass;

static GType subject_get_type(void);
G_DEFINE_TYPE(Subject, subject, G_TYPE_OBJECT)

static guint fired;
static Subject *subjects[2];
static GWeakRef known[2];

static void subject_init(Subject *subject) { (void)subject; }

static void subject_class_init(SubjectClass *subject_class) {
  fired = g_signal_new("fired", G_TYPE_FROM_CLASS(subject_class),
                       G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                       0);
}

static void call_weak(GWeakRef *weak, uint64_t count) {
  while (count--) {
    gpointer subject = g_weak_ref_get(weak);
    if (!subject) g_error("dead");
    bench_function(&bench_context);
    g_object_unref(subject);
  }
}

static void run_weak(uint64_t count, unsigned thread) {
  (void)thread;
  call_weak(&known[0], count);
}

static void run_two_weak(uint64_t count, unsigned thread) {
  call_weak(&known[thread], count);
}

static void run_emit(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(subjects[0], fired, 0);
}

static void run_two_emit(uint64_t count, unsigned thread) {
  while (count--) g_signal_emit(subjects[thread], fired, 0);
}

static gulong connect_to(Subject *subject) {
  return g_signal_connect_swapped(subject, "fired", G_CALLBACK(bench_work),
                                  &bench_context);
}

static void run_connect(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--)
    g_signal_handler_disconnect(subjects[0], connect_to(subjects[0]));
}

static void run_weak_lifetime(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) {
    GWeakRef weak;
    gpointer subject = g_object_new(subject_get_type(), NULL);
    g_weak_ref_init(&weak, subject);
    g_object_unref(subject);
    g_weak_ref_clear(&weak);
  }
}

// Emissions to more than one.
static Subject *many[4], *lively;

static void run_emit_0(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(many[0], fired, 0);
}

static void run_emit_1(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(many[1], fired, 0);
}

static void run_emit_10(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(many[2], fired, 0);
}

static void run_emit_1000(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(many[3], fired, 0);
}

static void run_lively(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_emit(lively, fired, 0);
}

static void churn(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) g_signal_handler_disconnect(lively, connect_to(lively));
}

void peer_emissions(void) {
  const int handlers[] = {0, 1, 10, 1000};
  for (int each = 0; each < 4; each++) {
    many[each] = g_object_new(subject_get_type(), NULL);
    for (int one = 0; one < handlers[each]; one++) connect_to(many[each]);
  }
  lively = g_object_new(subject_get_type(), NULL);
  for (int one = 0; one < 10; one++) connect_to(lively);
  bench_add("g_signal_emit to 0", run_emit_0);
  bench_add("g_signal_emit to 1", run_emit_1);
  bench_add("g_signal_emit to 10", run_emit_10);
  bench_add("g_signal_emit to 1 000", run_emit_1000);
  bench_case beside = {.name = "g_signal_emit to 10, with churn",
                       .run = run_lively, .busy = churn};
  bench_add_case(&beside);
}

void peer_calls(void) {
  for (int i = 0; i < 2; i++) {
    subjects[i] = g_object_new(subject_get_type(), NULL);
    g_weak_ref_init(&known[i], subjects[i]);
    connect_to(subjects[i]);
  }
  bench_add("GWeakRef get + call + unref", run_weak);
  bench_add("g_signal_emit, one handler", run_emit);
}

void peer_threads(void) {
  bench_add_threads("GWeakRef, one object", run_weak);
  bench_add_threads("GWeakRef, two objects", run_two_weak);
  bench_add_threads("g_signal_emit, one object", run_emit);
  bench_add_threads("g_signal_emit, two objects", run_two_emit);
}

void peer_lifetimes(void) {
  bench_add("g_signal_connect + disconnect", run_connect);
  bench_add("g_object_new + GWeakRef, and release", run_weak_lifetime);
}
