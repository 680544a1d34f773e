/* SPDX-License-Identifier: Apache-2.0
 *
 * callback_registry.h - callbacks that cannot be called after they died.
 *
 * A callback is registered once and named from then on by a token: a 64-bit
 * number that is compared, never followed. cbr_enter answers "live, and it
 * stays live until you leave" in a few nanoseconds, or says why not. Ending a
 * callback can wait until nothing of it is running. Every registration,
 * ending, call and refusal can be read afterwards in an SQLite file.
 *
 *   cbr_registry registry;
 *   cbr_token token;
 *   cbr_registry_open(NULL, &registry);
 *   CBR_REGISTER(registry, "progress", on_progress, state, free, CBR_NONE,
 *                &token);
 *   CBR_CALL(token, void (*)(void *, double), (cbr_now.context, 0.5));
 *   cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER);
 *
 * State that no destroy frees (NULL instead of free above) is yours to free,
 * but not before cbr_invalidate_wait has answered CBR_OK or CBR_ALREADY:
 * cbr_invalidate alone does not say that no call is using it.
 *
 * RULES FOR THE WHOLE LIBRARY
 *
 * Handles.  Any 64-bit value may be passed as any handle, at any time, on any
 *   thread: the answer is a status, without a side effect (G1). No value is
 *   given out twice in a process (G2). A handle holds nothing: copying and
 *   losing it is free (G5). 0 is CBR_NONE; all-ones is never given out.
 * Statuses.  0 is CBR_OK, positive values are outcomes, negative ones errors.
 *   cbr_last_error() has a sentence for the calling thread's last status that
 *   was not CBR_OK; ask for it in a statement of its own, after the call.
 *   Every function that takes a handle can answer these, and they are not
 *   repeated below:
 *     CBR_E_INVALID   the handle is CBR_NONE or not of a handle's form; an
 *                     argument that must not be NULL is
 *     CBR_E_KIND      a handle of another kind than the parameter's
 *     CBR_E_STALE     dead, or never given out
 *     CBR_E_CLOSED    its registry has been closed
 *     CBR_E_FORKED    it was inherited through fork
 *     CBR_E_NOMEM     the calling thread's first use found no memory
 * Out-parameters come last and are set on failure too (to 0 or empty).
 * Strings are UTF-8, borrowed for the duration of the call, and copied. A
 *   label or name with a control character, or text that is not UTF-8, is
 *   CBR_E_INVALID; a note may have lines, a file's name may have any bytes.
 * Option structures begin with their size; use the _INIT macro. A smaller
 *   size than the first release's, or a larger one whose tail is not zero, is
 *   CBR_E_INVALID. Unknown flags are CBR_E_INVALID.
 * Threads.  Every function may be called from any thread.
 * Callbacks.  Every function may be called from inside any callback, destroy
 *   or visitor, on its own handle or any other (G12). The library holds no
 *   lock while it runs any of your functions (G13).
 * Signals.  Only cbr_is_live, cbr_status_name, cbr_status_text, cbr_version,
 *   cbr_cookie and cbr_from_cookie are async-signal-safe.
 * Exceptions.  No C++ exception may leave a destroy or a visitor: the library
 *   is called between you and them, and the program would be terminated.
 *   Exceptions out of a callback are between you and the callback; the guard
 *   of callback_registry.hpp leaves the call. longjmp: see cbr_unwind.
 * membarrier.  Calls are cheap because endings ask the kernel for the fences
 *   (membarrier, Linux 4.14); where it is refused when the library is first
 *   used, each call pays for a full fence instead. A sandbox that takes
 *   membarrier away later would make calls unsafe: the process is aborted,
 *   with a message. Set CBR_FORCE_FALLBACK=1 in the environment of such a
 *   program.
 * fork.  In the child every inherited handle is answered CBR_E_FORKED and
 *   nothing of the parent's history is touched; a new registry works.
 * Thread numbers.  Texts say "thread 2", the history and cbr_explain
 *   "name#2": it is one number, which a thread gets when it first uses the
 *   library, and no other thread of the process gets it. The name is the one
 *   that the thread had then; "thread" when it had none.
 * Time.  Durations are nanoseconds; CBR_FOREVER waits without limit; 0 asks
 *   without waiting.
 * Blocking.  A function waits for your code, or for the disk, only where its
 *   comment says so ("Blocking:").
 * Since.  Everything here is since 0.1.0 unless it says otherwise.
 */
#ifndef CALLBACK_REGISTRY_H
#define CALLBACK_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define CBR_WARN_UNUSED [[nodiscard]]
#elif defined(__GNUC__)
#define CBR_WARN_UNUSED __attribute__((warn_unused_result))
#else
#define CBR_WARN_UNUSED
#endif

/* Calls go straight through the address table, one jump less. */
#if defined(__ELF__) && defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(noplt)
#define CBR_FAST __attribute__((noplt))
#endif
#endif
#ifndef CBR_FAST
#define CBR_FAST
#endif

/* Converts a function's address to a pointer to another type of function, and
 * no compiler warns of it: the way by a number says that it is meant. */
#ifdef __cplusplus
#define CBR_FUNCTION_CAST_(type, function) \
  reinterpret_cast<type>(reinterpret_cast<uintptr_t>(function))
#else
#define CBR_FUNCTION_CAST_(type, function) ((type)(uintptr_t)(function))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- Version -- */

#define CBR_VERSION_MAJOR 0
#define CBR_VERSION_MINOR 1
#define CBR_VERSION_PATCH 0
#define CBR_VERSION "0.1.0"

/* Returns the version of the library in use, as "major.minor.patch".
 * The string is static. Threads: any; async-signal-safe. */
const char *cbr_version(void);

/* ------------------------------------------------------------- Handles -- */

typedef uint64_t cbr_handle;        /* any of the kinds below */
typedef cbr_handle cbr_registry;
typedef cbr_handle cbr_token;
typedef cbr_handle cbr_owner;
typedef cbr_handle cbr_lease_handle;
typedef cbr_handle cbr_slot;
typedef cbr_handle cbr_signal;
typedef cbr_handle cbr_queue;
typedef cbr_handle cbr_session;
typedef cbr_handle cbr_task;
typedef cbr_handle cbr_reply;
typedef cbr_handle cbr_thunk;

#ifdef __cplusplus
#define CBR_NONE static_cast<cbr_handle>(0)
#else
#define CBR_NONE ((cbr_handle)0)  /* in this form Swift knows it, too */
#endif
#define CBR_FOREVER UINT64_MAX

typedef enum cbr_kind {
  CBR_KIND_NONE = 0,
  CBR_KIND_REGISTRY = 1,
  CBR_KIND_TOKEN = 2,
  CBR_KIND_OWNER = 3,
  CBR_KIND_LEASE = 4,
  CBR_KIND_SLOT = 5,
  CBR_KIND_SIGNAL = 6,
  CBR_KIND_QUEUE = 7,
  CBR_KIND_SESSION = 8,
  CBR_KIND_TASK = 9,
  CBR_KIND_REPLY = 10,
  CBR_KIND_THUNK = 11
} cbr_kind;

/* ------------------------------------------------------------ Statuses -- */

typedef enum cbr_status {
  CBR_OK = 0,
  CBR_PENDING = 1,            /* dead; finishes elsewhere */
  CBR_DEFERRED = 2,           /* dead; finishes when the caller's own call,
                                 destroy or visitor unwinds */
  CBR_ALREADY = 3,            /* was dead before */
  CBR_STOPPED = 4,            /* a visitor or handler asked to stop */
  CBR_EMPTY = 5,              /* the slot holds no token */
  CBR_E_INVALID = -1,         /* an argument is wrong; see cbr_last_error */
  CBR_E_STALE = -2,           /* the handle is dead, or was never given out */
  CBR_E_KIND = -3,            /* a handle of another kind */
  CBR_E_INTERFACE = -4,       /* another interface or type tag */
  CBR_E_UNIMPLEMENTED = -5,   /* the optional method is absent */
  CBR_E_FOREIGN = -6,         /* the handle belongs to another registry */
  CBR_E_DYING = -7,           /* the owner's death has begun */
  CBR_E_CLOSED = -8,          /* it, or its registry, has been closed */
  CBR_E_FULL = -9,            /* a bound is reached */
  CBR_E_CONSUMED = -10,       /* a one-shot was used before */
  CBR_E_WOULD_DEADLOCK = -11, /* waiting would close a ring of waiters */
  CBR_E_TIMEOUT = -12,        /* the time is over; calls are still running */
  CBR_E_DEPTH = -13,          /* emissions are nested too deeply */
  CBR_E_THREAD = -14,         /* not allowed on this thread */
  CBR_E_FORKED = -15,         /* inherited through fork */
  CBR_E_NOMEM = -16,          /* out of memory; nothing changed */
  CBR_E_LIMIT = -17,          /* all 2^26 slots of the process are in use or
                                 used up; nothing changed */
  CBR_E_AUDIT = -18,          /* the history cannot be opened or written */
  CBR_E_UNSUPPORTED = -19,    /* not possible here (cbr_thunk_create) */
  CBR_E_USER = -1000          /* never made by the library: for callbacks to
                                 return */
} cbr_status;

/* Returns the name of a status, such as "CBR_E_STALE"; "unknown" for any
 * other number. The string is static. Threads: any; async-signal-safe. */
const char *cbr_status_name(int status);

/* Returns a sentence about a status; "unknown status" for any other number.
 * The string is static. Threads: any; async-signal-safe. */
const char *cbr_status_text(int status);

/* Returns a sentence about the calling thread's last status that was not
 * CBR_OK, naming the argument or handle at fault ("label is 300 bytes; the
 * limit is 255"); "" when there was none. Valid until the thread's next call
 * into the library. Threads: each has its own. */
const char *cbr_last_error(void);

/* ------------------------------------------- Reasons and dispositions -- */

/* Why something ended. Values from CBR_REASON_USER up are the program's. */
typedef uint32_t cbr_reason;
enum {
  CBR_REASON_NONE = 0,
  CBR_REASON_ENDED = 1,            /* the program ended it */
  CBR_REASON_OWNER_DIED = 2,
  CBR_REASON_OBJECT_DIED = 3,
  CBR_REASON_REGISTRY_CLOSED = 4,  /* still live at close: a leak */
  CBR_REASON_CONSUMED = 5,         /* a one-shot was used */
  CBR_REASON_REPLACED = 6,
  CBR_REASON_CANCELLED = 7,
  CBR_REASON_TIMED_OUT = 8,
  CBR_REASON_UNLOADED = 9,         /* its plug-in is about to be unloaded */
  CBR_REASON_DELEGATE_DIED = 10,   /* of a session */
  CBR_REASON_QUEUE_ENDED = 11,     /* of a session; of a completion's clock */
  CBR_REASON_USER = 1000
};

/* What a visitor answers: CBR_CONTINUE to be shown the next item, CBR_STOP or
 * any other value to be shown no more. What a signal's handler answers:
 * CBR_CONTINUE, CBR_STOP or any other value to end the emission, or
 * CBR_DISCONNECT to be called no more, while the emission goes on. What a
 * reply says: CBR_ALLOW, CBR_CANCEL, CBR_HAND_OVER. Also the answer that an
 * interface declares for an absent method, which may be any value: the library
 * hands it on and gives it no meaning. */
typedef int32_t cbr_disposition;
enum {
  CBR_CONTINUE = 0,
  CBR_STOP = 1,
  CBR_DISCONNECT = 2,
  CBR_ALLOW = 3,
  CBR_CANCEL = 4,
  CBR_HAND_OVER = 5
};

/* ------------------------------------------------------------ Registry -- */

/* How much a registry or a token writes to the history. Notes are kept at each
 * level. Refusals follow the registry's level, not the token's: at OFF they
 * are only counted (cbr_statistics.refused), at the others each is recorded,
 * also of a token that is OFF itself. */
enum {
  CBR_LEVEL_DEFAULT = 0,   /* a registry: CALLS; a token: the registry's */
  CBR_LEVEL_OFF = 1,       /* nothing else */
  CBR_LEVEL_LIFECYCLE = 2, /* all but single calls, which are counted */
  CBR_LEVEL_CALLS = 3      /* also one row per call, with its duration */
};

enum {
  CBR_STRICT_LEAKS = 1u    /* print what is still live at close to stderr */
};

/* What becomes of an event for which its thread's memory has no room. None
 * overwrites the oldest one: calls would cost other events. To keep the newest
 * limit the history instead (max_calls, max_events), which forgets its oldest;
 * so that no call waits there is COUNT, and so that nothing does, DROP. */
enum {
  CBR_OVERFLOW_BLOCK = 1, /* it waits, block_timeout_ns at most; then a call is
                             counted, and another event lost */
  CBR_OVERFLOW_COUNT = 2, /* calls only: they are counted, exactly */
  CBR_OVERFLOW_DROP = 3,  /* it is lost at once; the table `loss` says how many
                             were */
  CBR_OVERFLOW_ABORT = 4  /* the process is aborted: better no program than one
                             without its history */
};

typedef enum cbr_history_state {
  CBR_HISTORY_OFF = 0,
  CBR_HISTORY_GOOD = 1,
  CBR_HISTORY_DEGRADED = 2  /* it cannot be written; losses are counted */
} cbr_history_state;

/* Told when a history can no longer be written, when it can be again, and, at
 * most once a second, that events were lost.
 *   context   the options' history_context
 *   state     CBR_HISTORY_GOOD or CBR_HISTORY_DEGRADED
 *   sentence  which file, why, and what can be done; valid until it returns
 * Threads: on the thread that writes the history, with no lock held; nothing
 * is written before it returns. cbr_audit_flush is CBR_E_WOULD_DEADLOCK there,
 * and cbr_registry_close CBR_DEFERRED. It is not called any more when the
 * registry's close has returned CBR_OK. */
typedef void (*cbr_history_changed)(void *context, cbr_history_state state,
                                    const char *sentence);

typedef struct cbr_registry_options {
  size_t size;              /* sizeof(cbr_registry_options) */
  const char *label;        /* at most 255 bytes; NULL: "registry" */
  const char *history_path; /* an SQLite file, made when missing; NULL: the
                               history is kept in memory */
  uint32_t level;           /* CBR_LEVEL_...; 0 is CBR_LEVEL_CALLS */
  uint32_t strictness;      /* CBR_STRICT_... flags */
  uint64_t ring_bytes;      /* memory for events of one thread not yet written,
                               and so much disk, reserved beside history_path
                               or in ring_directory; 0: 2 MiB; a power of two
                               from 4 KiB to 1 GiB */
  uint64_t calls_per_second; /* rows of single calls; beyond it calls are
                               counted; 0: 100 000; UINT64_MAX: no limit */
  uint64_t block_timeout_ns; /* how long an event other than a call waits for
                               room before it is counted as lost; 0: 1 s */
  /* How much the history keeps. What is beyond is deleted, the oldest first
   * and calls before other events, and its table `purge` says so. UINT64_MAX:
   * no limit. */
  uint64_t max_bytes;        /* on the disk, with what is beside history_path
                                or of it in ring_directory; at least 4 MiB; 0:
                                1 GiB. The file keeps the size that it once
                                had */
  uint64_t max_calls;        /* rows of calls, of which at least 8/9 stay; at
                                least 10 000; 0: no limit, but in memory
                                1 125 000 */
  uint64_t max_events;       /* rows of other events; at least 10 000; 0: no
                                limit, but in memory 1 125 000 */
  uint64_t max_call_age_ns;  /* by the machine's monotonic clock, which does */
  uint64_t max_event_age_ns; /* not go on while it is off; 0: no limit */
  uint32_t calls_overflow;   /* CBR_OVERFLOW_...; 0: COUNT */
  uint32_t events_overflow;  /* of other events; 0: BLOCK */
  cbr_history_changed history_changed; /* NULL: nobody is told */
  void *history_context;               /* passed on */
  const char *ring_directory; /* where the files of events not yet written
                                  are; NULL: beside history_path. See
                                  cbr_registry_open */
  uint32_t emission_depth;   /* emissions that a thread may be inside at a
                                time (cbr_emit); 0: 64 */
  uint32_t reserved;         /* 0 */
} cbr_registry_options;
#define CBR_REGISTRY_OPTIONS_INIT                                        \
  { sizeof(cbr_registry_options), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0, NULL, NULL, NULL, 0, 0 }

/* Opens a registry and its history.
 *   options  borrowed, with all that it points to; NULL: defaults, history in
 *            memory
 *   out      receives the registry
 * CBR_OK; CBR_E_INVALID options, of which ring_directory is of no use without
 * history_path; CBR_E_NOMEM; CBR_E_LIMIT too many slots; CBR_E_AUDIT the
 * history cannot be opened: not a database, of another program, of a newer
 * version, not writable, or on a network file system; or ring_directory is no
 * directory, cannot be written, has too long a name, or is on a full disk or
 * on a network file system (cbr_last_error names the remedy; the file is left
 * as it was, and none is made).
 * A history that is damaged is renamed, with its log, and another one made
 * that names it; the same is done while it is open, and when its file has been
 * removed or replaced. The table `fault` says so.
 * Beside history_path is a directory, history_path.rings, with a file for each
 * process that records: what a call has recorded is there when it returns, and
 * survives the death of the process. Opening a history takes over what dead
 * processes have left. Where such a file cannot be made, the table `fault`
 * says so.
 * With ring_directory the file is made there instead: on another disk, or in
 * memory (/dev/shm), where it survives the process and not the machine.
 * Programs, and registries of other histories, may name the same directory.
 * It must exist, and is never removed. A file in it is of one process and one
 * history: its name is random, ends with .ring, and nobody but the user may
 * read it (0600). Others who may write there could remove it, if no sticky bit
 * keeps them from that; a file of a user who owns neither the process nor the
 * history is not believed. The history notes where the file is (its table
 * ring_place): whoever opens it later, with any ring_directory or none, and
 * the command "cbr recover" look there too. A copy of a history leaves the
 * files alone, as long as that history is where it was. The library removes
 * its file at close, and that of a dead process when all of it is written. A
 * process that was killed while it opened a history may leave a file without
 * events, which nobody looks for. A file that is not there, since the machine
 * was restarted or a disk is not mounted, is named in `fault`, and looked for
 * again at each opening. A history that this process has open already keeps
 * the directory of its first opening.
 * Blocking: opens files; what dead processes have left is written first. */
CBR_WARN_UNUSED
cbr_status cbr_registry_open(const cbr_registry_options *options,
                             cbr_registry *out);

/* Ends everything in a registry, waits, writes the history to its end and
 * closes it. What was still live is a leak: it is recorded with reason
 * CBR_REASON_REGISTRY_CLOSED, and named in cbr_last_error.
 *   timeout_ns  how long to wait for calls in flight, for leases and for the
 *               history. A lease that is never ended, one of the calling
 *               thread's own included, makes CBR_FOREVER wait for ever
 * CBR_OK closed; CBR_DEFERRED called from inside a callback, destroy or
 * visitor of this registry: everything has ended, and the history is closed
 * when that unwinds; CBR_ALREADY; CBR_E_TIMEOUT everything has ended, calls or
 * leases remain and the rest happens when the last is over;
 * CBR_E_WOULD_DEADLOCK as in cbr_invalidate_wait; CBR_E_AUDIT closed, but the
 * history could not be written to its end.
 * Blocking: up to timeout_ns. */
cbr_status cbr_registry_close(cbr_registry registry, uint64_t timeout_ns);

/* Returns the registry that all users of one process share, opened on first
 * use. Its history is the file that the environment variable CBR_HISTORY
 * names, else memory; its level is CBR_LEVEL (off, lifecycle, calls).
 * CBR_NONE when it cannot be opened, or CBR_LEVEL has another value
 * (cbr_last_error says why). After it was closed the next call opens a new
 * one; so does a forked child. */
cbr_registry cbr_registry_shared(void);

/* Whether what is recorded and not yet written survives the process. */
typedef enum cbr_crash_protection {
  CBR_CRASH_PROTECTION_OFF = 0,     /* in memory, or no file could be made */
  CBR_CRASH_PROTECTION_IN_PART = 1, /* the disk had no room for some threads */
  CBR_CRASH_PROTECTION_ON = 2
} cbr_crash_protection;

typedef struct cbr_statistics {
  size_t size;
  uint64_t live_tokens;
  uint64_t live_owners;
  uint64_t live_leases;
  uint64_t unsettled;         /* dead, but not yet known to be quiescent */
  uint64_t registered;        /* tokens, since it was opened */
  uint64_t ended;             /* tokens */
  uint64_t refused;           /* attempts to call */
  uint64_t abandoned;         /* calls whose thread ended or jumped out */
  uint64_t slots;             /* handles it can hold without growing */
  uint64_t retired_slots;     /* of this registry, used up for good (G2) */
  uint64_t memory_bytes;      /* of slots; process-wide figures follow */
  uint64_t threads;           /* that use the library now */
  uint64_t heavy_fences;      /* membarrier calls or their substitute */
  uint64_t fork_handlers;     /* registrations with pthread_atfork: 0 or 1 */
  uint64_t events_emitted;    /* of this registry's history */
  uint64_t events_written;
  uint64_t events_aggregated; /* calls counted instead of written */
  uint64_t events_lost;
  uint32_t history_state;     /* cbr_history_state */
  uint32_t asymmetric;        /* 1: membarrier; 0: full fences */
  uint32_t crash_protection;  /* cbr_crash_protection */
  uint32_t reserved;
  uint64_t live_slots;
  uint64_t live_signals;
  uint64_t live_queues;
  uint64_t live_sessions;
  uint64_t live_tasks;
  uint64_t live_replies;
  uint64_t live_thunks;
} cbr_statistics;
#define CBR_STATISTICS_INIT \
  { sizeof(cbr_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills a snapshot of a registry's counters.
 *   out  its size field must be set (CBR_STATISTICS_INIT)
 * CBR_OK. Not one instant for all fields. Blocking: no. */
cbr_status cbr_registry_statistics(cbr_registry registry, cbr_statistics *out);

/* What a visitor is shown. Valid until the visitor returns. */
typedef struct cbr_item {
  size_t size;
  cbr_handle handle;
  cbr_kind kind;
  uint32_t line;           /* of its registration; 0: unknown */
  const char *label;
  const char *file;        /* "" when unknown */
  cbr_handle owner;        /* what it belongs to */
  uint64_t age_ns;         /* since its registration */
  uint64_t calls_in_flight;
  uint64_t leases;
} cbr_item;

typedef cbr_disposition (*cbr_visitor)(void *context, const cbr_item *item);

/* Calls visit for everything that is live in a registry. What is registered
 * or ended meanwhile may be left out. No lock is held: visit may do anything.
 * CBR_OK; CBR_STOPPED visit answered something else than CBR_CONTINUE. */
cbr_status cbr_registry_each_live(cbr_registry registry, cbr_visitor visit,
                                  void *context);

/* ---------------------------------------------------------- Registering -- */

typedef void (*cbr_function)(void);  /* cast to the real type at the call */
typedef void (*cbr_destroy)(void *context);

enum {
  CBR_METHOD_REQUIRED = 1u,
  CBR_METHOD_DEFAULT = 2u  /* absent: cbr_call.disposition has the default */
};

typedef struct cbr_method {
  const char *name;                    /* at most 255 bytes */
  uint32_t flags;                      /* CBR_METHOD_... */
  cbr_disposition default_disposition;
} cbr_method;

/* A protocol: named methods, some of them optional. Two interfaces are the
 * same when name and version are; the first one registered in a registry
 * fixes the methods, and a different list under the same name and version is
 * CBR_E_INTERFACE. */
typedef struct cbr_interface {
  size_t size;
  const char *name;                    /* at most 255 bytes */
  uint32_t version;
  uint32_t count;                      /* of methods, 1 to 256 */
  const cbr_method *methods;
} cbr_interface;

enum {
  CBR_ONE_SHOT = 1u,     /* the first successful enter ends it */
  CBR_THREAD_BOUND = 2u  /* may be entered on the registering thread only */
};

typedef struct cbr_registration {
  size_t size;
  const char *label;                   /* at most 255 bytes; NULL: "" */
  cbr_function function;               /* either one function ... */
  const cbr_interface *interface;      /* ... or an interface */
  const cbr_function *methods;         /* and its table; NULL: absent */
  void *context;                       /* passed on, never looked into */
  cbr_destroy destroy;                 /* frees the context; may be NULL */
  cbr_owner owner;                     /* CBR_NONE: the registry */
  uint64_t type_tag;                   /* 0: none; see cbr_enter_typed */
  uint32_t flags;                      /* CBR_ONE_SHOT, CBR_THREAD_BOUND */
  uint32_t line;
  const char *file;                    /* the site; at most 1023 bytes */
  uint32_t level;                      /* CBR_LEVEL_... of this token */
  uint32_t reserved;                   /* 0 */
  cbr_queue queue;                     /* where destroy runs; CBR_NONE: where
                                          the token comes to its end */
} cbr_registration;

#define CBR_HERE __LINE__, __FILE__    /* the fields line and file */
#define CBR_REGISTRATION_INIT                                             \
  { sizeof(cbr_registration), NULL, NULL, NULL, NULL, NULL, NULL,         \
    CBR_NONE, 0, 0, CBR_HERE, 0, 0, CBR_NONE }

/* Registers a callback.
 *   what  borrowed; everything in it but the context is copied
 *   out   receives the token. It is set before another thread can see the
 *         registration, so the callback itself may use it
 * CBR_OK; CBR_E_INVALID both or neither of function and interface, methods or
 * a type tag where they do not belong, a required method is missing (named),
 * text too long, unknown flags; CBR_E_INTERFACE the
 * interface's methods differ from those known; CBR_E_FOREIGN the owner or the
 * queue is of another registry; CBR_E_DYING the owner's or registry's end has
 * begun; CBR_E_STALE the queue is dead; CBR_E_NOMEM; CBR_E_LIMIT no more
 * slots.
 * On failure nothing is taken: the context stays yours, and destroy does not
 * run (G6). After success destroy runs exactly once, when the token is dead
 * and nothing is in flight or leased (G7): on the thread that ends it, else on
 * the one that leaves it last. Where a queue is named, it runs there, before
 * the messages that wait and outside of the queue's bounds; so ending the
 * token is CBR_PENDING, and whoever waits for it waits for the queue. When the
 * queue is dead by then, destroy runs where it would without; what it still
 * had to destroy when it ends, runs where that ends.
 * Blocking: no user code is waited for. Cost: with its end about 150 ns
 * (measured: README, "Numbers"). */
CBR_WARN_UNUSED
cbr_status cbr_register(cbr_registry registry, const cbr_registration *what,
                        cbr_token *out);

/* -------------------------------------------------------------- Calling -- */

/* A call in flight, on the caller's stack. It may be copied or moved within
 * the thread that entered; one of the copies is left. */
typedef struct cbr_call {
  cbr_function function;
  void *context;
  cbr_token token;
  int64_t disposition;     /* the default, after CBR_E_UNIMPLEMENTED */
  uint64_t reserved[3];
} cbr_call;
#define CBR_CALL_INIT { NULL, NULL, CBR_NONE, 0, { 0, 0, 0 } }

/* Returns whether a handle of any kind is live at this moment. This is advice:
 * only cbr_enter is a guarantee. Threads: any; async-signal-safe. */
CBR_FAST
bool cbr_is_live(cbr_handle handle);

/* Begins a call. After CBR_OK, call->function and call->context are a matching
 * pair and stay valid until the matching cbr_leave, whatever other threads do
 * (G8). Cast function to its real type and call it.
 *   call  filled; function is NULL on failure, and cbr_leave must not follow
 * CBR_OK; CBR_E_STALE; CBR_E_CONSUMED a one-shot that was used;
 * CBR_E_INTERFACE it has an interface or a type tag; CBR_E_THREAD it is bound
 * to another thread.
 * A refusal is recorded with the registration that the token once named.
 * Nested and recursive calls may have any depth that memory allows (G11).
 * Blocking: no. Cost: with cbr_leave about 6 ns over the bare call (measured:
 * README, "Numbers"). */
CBR_WARN_UNUSED CBR_FAST
cbr_status cbr_enter(cbr_token token, cbr_call *call);

/* Like cbr_enter, for a token that was registered with this type tag; any
 * other tag is CBR_E_INTERFACE before the context is touched (G10). A token
 * with a tag can only be entered here. */
CBR_WARN_UNUSED
cbr_status cbr_enter_typed(cbr_token token, uint64_t type_tag, cbr_call *call);

/* Begins a call of one method of a token that was registered with an
 * interface.
 *   interface  borrowed; name and version are compared
 *   method     index into the interface's methods
 * As cbr_enter, and: CBR_E_INTERFACE another interface, or none;
 * CBR_E_INVALID no such method; CBR_E_UNIMPLEMENTED the optional method is
 * absent: call->disposition has its default (0 where it declares none). */
CBR_WARN_UNUSED
cbr_status cbr_enter_method(cbr_token token, const cbr_interface *interface,
                            uint32_t method, cbr_call *call);

/* Ends a call. The token's destroy may run here, when this was the last call
 * of a dead token.
 *   call  from a successful enter on this thread; its token is cleared on
 *         success
 * CBR_OK; CBR_E_INVALID there is no such call in flight on this thread (left
 * twice, unwound, never entered, entered on another thread); CBR_E_FORKED.
 * Calls may be left in any order. */
CBR_FAST
cbr_status cbr_leave(cbr_call *call);

/* Says whether a token has a method: CBR_OK, CBR_E_UNIMPLEMENTED,
 * CBR_E_INTERFACE, CBR_E_INVALID, CBR_E_STALE. Advice, like cbr_is_live. */
cbr_status cbr_responds(cbr_token token, const cbr_interface *interface,
                        uint32_t method);

/* Takes a lease: a hold on a token that is not tied to a thread or a scope.
 * While it lasts the context is not destroyed, even when the token is ended.
 * Any token can be leased, whatever it asks of a call; a one-shot is not used
 * up by it. A lease has no thread: whoever waits for a token for ever, while
 * it holds a lease on it itself, waits for ever.
 * CBR_OK; CBR_E_STALE; CBR_E_CONSUMED; CBR_E_NOMEM; CBR_E_LIMIT. A refusal is
 * recorded. */
CBR_WARN_UNUSED
cbr_status cbr_lease(cbr_token token, cbr_lease_handle *out);

/* Gives the function and context of a leased token, also after the token's
 * end; valid until cbr_lease_end. There is nothing to leave. Type tag and
 * thread are not compared: whoever took the lease knows what it holds.
 * CBR_OK; CBR_E_INTERFACE it has methods instead of a function. */
CBR_WARN_UNUSED
cbr_status cbr_lease_get(cbr_lease_handle lease, cbr_call *call);

/* Ends a lease. The token's destroy may run here.
 * CBR_OK; CBR_ALREADY. */
cbr_status cbr_lease_end(cbr_lease_handle lease);

/* Returns a mark of the calling thread's calls in flight, for cbr_unwind. */
size_t cbr_mark(void);

/* Leaves all calls that the calling thread entered after the mark, as
 * abandoned: for use where longjmp arrives.
 * CBR_OK; CBR_E_INVALID the mark is above the present depth. */
cbr_status cbr_unwind(size_t mark);

/* --------------------------------------------------------------- Ending -- */

/* Ends a handle of any kind and all that belongs to it. After it has returned,
 * no call that had not entered will enter (G9).
 *
 * FREE NOTHING THAT A CALLBACK USES BEFORE cbr_invalidate_wait HAS ANSWERED.
 * For a token without destroy, and for what belongs to an owner without one,
 * CBR_OK here says that no call will begin, not that none is running: calls in
 * flight on other threads are not looked for, which keeps ending cheap (G14).
 * Memory that destroy frees is safe with either function.
 *
 * CBR_OK dead, and its destroy, if it has one, has run; CBR_PENDING something
 * of it is still in use elsewhere (a call, a lease, or a cbr_register that has
 * not returned), and destroy runs where the last of that is over;
 * CBR_DEFERRED the calling thread is inside it; CBR_ALREADY it was dead before
 * (cbr_last_error says when and by whom).
 * What belonged to a registry that has been closed is CBR_E_CLOSED; the
 * registry itself is CBR_ALREADY.
 * Ending twice is harmless and never touches a newer holder of the slot (G16).
 * Blocking: no user code is waited for. */
CBR_WARN_UNUSED
cbr_status cbr_invalidate(cbr_handle handle, cbr_reason reason);

/* Like cbr_invalidate, and waits until nothing of it is running on any other
 * thread and every destroy has returned.
 * CBR_OK and CBR_ALREADY: nothing is running: freeing everything is safe;
 * CBR_DEFERRED nothing is running but what the calling thread itself is
 * inside; CBR_E_TIMEOUT dead, still running (cbr_last_error names the call);
 * CBR_E_WOULD_DEADLOCK dead, and waiting would close a ring of threads that
 * wait for each other (named) (G15).
 * Blocking: up to timeout_ns. Do not hold a lock that the callback takes. */
CBR_WARN_UNUSED
cbr_status cbr_invalidate_wait(cbr_handle handle, cbr_reason reason,
                               uint64_t timeout_ns);

/* -------------------------------------------------------------- Looking -- */

/* Tells the life of a handle in text: kind, label, owner, where, when and by
 * which thread it was registered and ended and why, its calls, and the late
 * callers; a live queue's messages, a signal's connections, and the token that
 * a slot, session or task holds; for dead handles from the history, also after
 * their slot was reused, and for handles of an earlier run whose history is
 * open.
 *   text, size  receive the text, lines that each end with a newline, cut to
 *               size and ended by 0; may be NULL, 0
 *   needed      receives the bytes needed with the ending 0; may be NULL
 * CBR_OK; CBR_E_STALE nothing is known of it; CBR_E_FULL the text was cut. */
cbr_status cbr_explain(cbr_handle handle, char *text, size_t size,
                       size_t *needed);

/* Shows what cbr_invalidate would end, with calls in flight and leases.
 * CBR_OK; CBR_STOPPED. */
cbr_status cbr_impact(cbr_handle handle, cbr_visitor visit, void *context);

/* --------------------------------------------------------------- Owners -- */

/* Makes an owner: what callbacks belong to. Ending it ends them all (G17).
 * CBR_OK; CBR_E_INVALID; CBR_E_DYING; CBR_E_NOMEM; CBR_E_LIMIT. */
CBR_WARN_UNUSED
cbr_status cbr_owner_create(cbr_registry registry, const char *label,
                            cbr_owner *out);

/* Makes an owner that belongs to another one and ends with it. */
CBR_WARN_UNUSED
cbr_status cbr_owner_create_child(cbr_owner parent, const char *label,
                                  cbr_owner *out);

/* Gives the owner of a living object: the same until it has ended, by
 * cbr_object_died, cbr_invalidate or its registry, then never again; whoever
 * asks after that is given a new one (G18). The address is a key, and is not
 * followed.
 * CBR_OK; as cbr_owner_create. */
CBR_WARN_UNUSED
cbr_status cbr_owner_for_object(cbr_registry registry, const void *object,
                                const char *label, cbr_owner *out);

/* Ends the owner of an object; for the object's destructor. An object without
 * an owner is fine. The owner's reason is CBR_REASON_OBJECT_DIED, that of its
 * callbacks CBR_REASON_OWNER_DIED. Like cbr_invalidate it does not wait: where
 * callbacks without destroy use the object, end its owner with
 * cbr_invalidate_wait before the object goes.
 * CBR_OK; as cbr_invalidate. */
cbr_status cbr_object_died(cbr_registry registry, const void *object);

/* ---------------------------------------------------------------- Slots -- */

/* Makes a slot: a delegate property of some object. It holds one token, and
 * reads as empty from the moment that token dies (G19). Any number of slots
 * may hold one token. A slot is ended by cbr_invalidate; it holds nothing
 * alive.
 *   label  at most 255 bytes; NULL: ""
 *   owner  what it belongs to and ends with; CBR_NONE: the registry
 *   out    receives the slot
 * CBR_OK; CBR_E_INVALID; CBR_E_DYING the owner's or registry's end has begun;
 * CBR_E_FOREIGN; CBR_E_NOMEM; CBR_E_LIMIT. Blocking: no. */
CBR_WARN_UNUSED
cbr_status cbr_slot_create(cbr_registry registry, const char *label,
                           cbr_owner owner, cbr_slot *out);

/* Makes a slot hold a token instead of the one that it held.
 *   token  live, of the same registry; CBR_NONE empties the slot
 * CBR_OK; CBR_E_STALE the slot or the token is dead (cbr_last_error says
 * which), and the slot is as it was; CBR_E_KIND; CBR_E_FOREIGN; CBR_E_NOMEM.
 * Blocking: no. */
cbr_status cbr_slot_set(cbr_slot slot, cbr_token token);

/* Returns the token that a slot holds; CBR_NONE when it is empty, its token is
 * dead, or the slot itself is (cbr_is_live tells). Takes no lock. */
cbr_token cbr_slot_get(cbr_slot slot);

/* Begins a call of the token that a slot holds, as cbr_enter_method does; as
 * cbr_enter where interface is NULL, and method 0.
 *   call  to be left by cbr_leave after CBR_OK
 * CBR_EMPTY it holds none: call->disposition has the default that interface
 * declares for the method (0 where it declares none), and nothing is recorded;
 * CBR_E_STALE the slot is dead; else as cbr_enter_method, of the token. */
CBR_WARN_UNUSED
cbr_status cbr_slot_enter(cbr_slot slot, const cbr_interface *interface,
                          uint32_t method, cbr_call *call);

/* Called for a slot whose token has died.
 *   context  of the observing token
 *   slot     the slot, which is empty, or holds another token by now
 *   token    the dead one */
typedef void (*cbr_slot_cleared)(void *context, cbr_slot slot,
                                 cbr_token token);

/* Names the token that is called, as a cbr_slot_cleared, when the slot's token
 * dies; not when cbr_slot_set replaces it. It is called by the thread that
 * ends the token, with no lock held, before the ending function returns.
 *   observer  a function's token of the same registry; CBR_NONE: nobody
 * CBR_OK; CBR_E_STALE; CBR_E_KIND; CBR_E_FOREIGN. One that is dead by then is
 * refused, and the refusal recorded. */
cbr_status cbr_slot_on_clear(cbr_slot slot, cbr_token observer);

/* -------------------------------------------------------------- Signals -- */

/* Makes a signal: tokens that are called together.
 *   label  at most 255 bytes; NULL: ""
 *   owner  what it belongs to and ends with; CBR_NONE: the registry
 *   out    receives the signal
 * CBR_OK; CBR_E_INVALID; CBR_E_DYING; CBR_E_FOREIGN; CBR_E_NOMEM;
 * CBR_E_LIMIT. Ending it ends all its connections. Blocking: no. */
CBR_WARN_UNUSED
cbr_status cbr_signal_create(cbr_registry registry, const char *label,
                             cbr_owner owner, cbr_signal *out);

/* A signal's handler; see cbr_disposition.
 *   context   of its registration
 *   argument  what cbr_emit was given */
typedef cbr_disposition (*cbr_handler)(void *context, void *argument);

typedef struct cbr_connection_options {
  size_t size;
  int32_t priority;  /* higher ones are called first; 0 where none is given */
  uint32_t flags;    /* 0 */
  /* A handler that is not called by who emits: a message for it is posted to
   * the queue, and whether it is connected is asked again at delivery. */
  cbr_queue queue;   /* CBR_NONE: it is called by who emits */
  void *(*copy_argument)(void *argument);  /* makes the message's payload, with
                        no lock held; NULL where that fails; NULL here: the
                        argument itself, which has to live long enough */
  void (*free_argument)(void *payload);    /* as cbr_message.free_payload */
  uint64_t argument_bytes;                 /* as cbr_message.payload_bytes */
} cbr_connection_options;
#define CBR_CONNECTION_OPTIONS_INIT \
  { sizeof(cbr_connection_options), 0, 0, CBR_NONE, NULL, NULL, 0 }

/* Registers a handler, and connects it to a signal. It is ended like any
 * token: by cbr_invalidate, with its owner, or with its signal. Only its
 * signal calls it: cbr_enter is CBR_E_INTERFACE.
 *   what     borrowed; function is a cbr_handler; no interface, no type_tag.
 *            CBR_ONE_SHOT: it ends before its first call begins.
 *            CBR_THREAD_BOUND: emissions on other threads pass it over, and a
 *            refusal is recorded
 *   options  borrowed; NULL: priority 0. With a queue the emission goes on at
 *            once, or waits for room in it as cbr_post does; what the handler
 *            answers then ends nothing but, with CBR_DISCONNECT, itself. One
 *            that is ended or blocked by then is not called
 *   out      receives the token
 * As cbr_register; CBR_E_STALE, CBR_E_DYING: the signal or the queue is dead.
 * An emission that has begun does not call it.
 * Blocking: no user code is waited for. Cost: constant, but where a handler of
 * lower priority is there before it, a copy of the list. */
CBR_WARN_UNUSED
cbr_status cbr_connect(cbr_signal signal, const cbr_registration *what,
                       const cbr_connection_options *options, cbr_token *out);

/* What an emission did. */
typedef struct cbr_emission {
  size_t size;
  uint64_t called;       /* handlers that were called */
  uint64_t blocked;      /* handlers that were passed over as blocked; of a
                            blocked signal all that it has */
  cbr_token stopped_by;  /* the handler that ended it; else CBR_NONE */
  uint64_t queued;       /* handlers that will be called on their queues */
  uint64_t refused;      /* those whose queue did not take the message, or for
                            which the argument could not be copied: recorded
                            as refused */
} cbr_emission;
#define CBR_EMISSION_INIT { sizeof(cbr_emission), 0, 0, CBR_NONE, 0, 0 }

/* Calls the handlers of a signal on the calling thread, one after the other:
 * those that were connected when it began, and are still connected when their
 * turn comes; in order of priority, then of connection (G20). Each call is one
 * like those of cbr_enter, counted and recorded so. No lock is held: a handler
 * may connect, end, block and emit, also what is calling it.
 *   argument  passed on
 *   result    filled; may be NULL; its size must be set (CBR_EMISSION_INIT)
 * CBR_OK; CBR_STOPPED a handler ended the emission (result->stopped_by), or
 * the signal was ended meanwhile (CBR_NONE there); CBR_E_STALE the signal is
 * dead; CBR_E_DEPTH the thread is inside as many emissions as the registry's
 * emission_depth allows, and nobody was called. These two are recorded. In the
 * child of a handler that forks the emission ends with CBR_E_FORKED.
 * No C++ exception may leave a handler; callback_registry.hpp carries it
 * around. longjmp: see cbr_unwind. Blocking: no. */
cbr_status cbr_emit(cbr_signal signal, void *argument, cbr_emission *result);

/* Called after each handler of an emission, while it is still entered.
 *   context   as given to cbr_emit_combined
 *   argument  what the handler was given, and has perhaps answered in
 *   handler   its token
 *   answer    what it answered
 * Returns the answer that counts. */
typedef cbr_disposition (*cbr_combiner)(void *context, void *argument,
                                        cbr_token handler,
                                        cbr_disposition answer);

/* Like cbr_emit; combine is asked after each handler, and so can gather
 * results or end the emission. */
cbr_status cbr_emit_combined(cbr_signal signal, void *argument,
                             cbr_combiner combine, void *context,
                             cbr_emission *result);

/* Keeps a signal, or one connection, from being called until it has been
 * unblocked as often as blocked. Handlers in flight are not waited for.
 *   handle  a signal, or a token that cbr_connect gave
 * CBR_OK; CBR_E_KIND neither; CBR_E_STALE; CBR_E_LIMIT; cbr_unblock:
 * CBR_E_INVALID it is not blocked. Recorded. */
cbr_status cbr_block(cbr_handle handle);
cbr_status cbr_unblock(cbr_handle handle);

/* --------------------------------------------------------------- Queues -- */

/* Where calls are delivered. */
enum {
  CBR_QUEUE_PUMPED = 1,  /* where the program calls cbr_queue_run */
  CBR_QUEUE_THREAD = 2   /* on a thread of the library's, one for the queue */
};

/* What becomes of a message for which there is no room. Before a post fails or
 * waits, a message is looked for whose token is dead, and dropped instead: so
 * what nobody would receive does not keep a queue full. A queue that stays
 * full is not searched by each post, but once in as many as there are 64
 * messages in it. */
enum {
  CBR_QUEUE_BLOCK = 1,        /* the poster waits, block_timeout_ns at most */
  CBR_QUEUE_FAIL = 2,         /* the post is CBR_E_FULL */
  CBR_QUEUE_DROP_OLDEST = 3,  /* the message that waits longest is dropped */
  CBR_QUEUE_KEEP_LATEST = 4   /* a token has one message at most for each
                                 method: a new one takes the place of the one
                                 that waits, also where there is room, and has
                                 its turn; else CBR_E_FULL */
};

typedef struct cbr_queue_options {
  size_t size;
  const char *label;      /* at most 255 bytes; NULL: "" */
  cbr_owner owner;        /* what it belongs to; CBR_NONE: the registry */
  uint32_t kind;          /* 0: PUMPED */
  uint32_t overflow;      /* CBR_QUEUE_BLOCK ...; 0: FAIL */
  uint64_t max_items;     /* messages that wait; 0: 1024; UINT64_MAX: no
                             limit */
  uint64_t max_bytes;     /* of their payload_bytes; 0: 64 MiB; UINT64_MAX: no
                             limit */
  uint64_t block_timeout_ns; /* 0: 1 s; CBR_FOREVER */
} cbr_queue_options;
#define CBR_QUEUE_OPTIONS_INIT \
  { sizeof(cbr_queue_options), NULL, CBR_NONE, 0, 0, 0, 0, 0 }

/* Makes a queue.
 *   options  borrowed; NULL: defaults
 *   out      receives the queue
 * CBR_OK; CBR_E_INVALID; CBR_E_DYING the owner's or registry's end has begun;
 * CBR_E_FOREIGN; CBR_E_NOMEM no memory, thread or descriptor; CBR_E_LIMIT.
 * It is ended by cbr_queue_finish, or like everything by cbr_invalidate: then
 * what waits in it is dropped, and posters that wait are CBR_E_CLOSED (G22).
 * cbr_invalidate_wait waits for the call that is being delivered, for the
 * payloads that are freed, and for the queue's thread, which runs none of your
 * functions any more after CBR_OK (but the destructors of its thread-specific
 * data). Blocking: until its thread has started. */
CBR_WARN_UNUSED
cbr_status cbr_queue_create(cbr_registry registry,
                            const cbr_queue_options *options, cbr_queue *out);

/* How a message calls.
 *   function  of the token, to be cast to its real type
 *   context   of the token
 *   payload   of the message */
typedef void (*cbr_invoke)(cbr_function function, void *context,
                           void *payload);

typedef struct cbr_message {
  size_t size;
  void *payload;          /* passed on, never looked into */
  uint64_t payload_bytes; /* what it counts for max_bytes */
  void (*free_payload)(void *payload);  /* NULL: nothing is freed */
  const cbr_interface *interface;  /* for a token that has one; borrowed */
  uint32_t method;        /* of the interface; else 0 */
  uint32_t reserved;      /* 0 */
  uint64_t type_tag;      /* for a token that has one; else 0 */
  cbr_invoke invoke;      /* NULL: the function is a
                             void (*)(void *context, void *payload) */
} cbr_message;
#define CBR_MESSAGE_INIT \
  { sizeof(cbr_message), NULL, 0, NULL, NULL, 0, 0, 0, NULL }

/* Posts a message: a call of a token, to be delivered by the queue. Then it is
 * a call like those of cbr_enter, counted and recorded so; whether the token
 * is live, and may be called there, is asked again (G21). Messages of one
 * token are delivered in the order of their posts.
 *   token    live, of the same registry
 *   message  borrowed; NULL: no payload
 * CBR_OK the payload is the queue's: free_payload is called once, when it has
 * been delivered, dropped or replaced, with no lock held, on the thread that
 * did so, which may be this one.
 * On failure the payload stays yours (G6):
 * CBR_E_STALE the queue or the token is dead (cbr_last_error says which; of
 * the token it is recorded, like a call that comes too late); CBR_E_CONSUMED;
 * CBR_E_FOREIGN; CBR_E_INTERFACE, CBR_E_UNIMPLEMENTED as cbr_enter_method;
 * CBR_E_INVALID payload_bytes alone is over max_bytes, or no such method;
 * CBR_E_CLOSED the queue is finishing, or was ended while the poster waited;
 * CBR_E_FULL; CBR_E_TIMEOUT no room in block_timeout_ns;
 * CBR_E_WOULD_DEADLOCK it is full, and its delivery waits for this thread:
 * which is inside it, or inside another queue for which its own thread waits,
 * and so on (G22); CBR_E_NOMEM.
 * Blocking: CBR_QUEUE_BLOCK; else no. Not async-signal-safe. */
CBR_WARN_UNUSED
cbr_status cbr_post(cbr_queue queue, cbr_token token,
                    const cbr_message *message);

/* Returns a descriptor that is readable while messages wait in a pumped queue,
 * and from the moment when a timeout on it is over (cbr_task_options,
 * cbr_completion_set_timeout) until cbr_queue_run: for poll, epoll (level or
 * edge), GLib, libuv, libevent; -1 when the queue is dead or has a thread. It
 * is the queue's: do not read or close it, and stop polling before you end the
 * queue. A cbr_queue_run that leaves something makes it readable anew. It may
 * become readable, once, for a timeout of what has ended before: then there is
 * nothing to run. A pumped queue takes three of the process's descriptors. A
 * forked child does not have it. */
int cbr_queue_descriptor(cbr_queue queue);

/* Delivers messages of a pumped queue on the calling thread, one after the
 * other. What is posted meanwhile is left for the next time. First comes what
 * is outside of the queue's bounds, and not counted: destroys, timeouts that
 * are over by then, events of sessions.
 *   limit  how many at most, dropped ones counted; 0: all that wait now
 *   ran    receives how many; may be NULL
 * CBR_OK; CBR_DEFERRED the calling thread is inside a delivery of this queue;
 * CBR_PENDING another thread is: in both cases nothing was run, and that
 * delivery goes on until the queue is empty; CBR_E_STALE; CBR_E_THREAD the
 * queue has a thread; CBR_E_NOMEM a message could not be delivered, and is the
 * next one still.
 * No C++ exception may leave what is called here. longjmp: see cbr_unwind.
 * Blocking: no. */
cbr_status cbr_queue_run(cbr_queue queue, size_t limit, size_t *ran);

/* Ends a queue when all that waits has been delivered. Posts are CBR_E_CLOSED
 * from now on.
 * CBR_OK it has ended; CBR_PENDING it will; CBR_DEFERRED when the calling
 * thread's delivery is over; CBR_ALREADY; CBR_E_STALE. Blocking: no. */
cbr_status cbr_queue_finish(cbr_queue queue);

/* What became of a queue's messages: posted = delivered + merged +
 * dropped_full + dropped_stale + dropped_refused + dropped_ended + waiting +
 * taken. */
typedef struct cbr_queue_counts {
  size_t size;
  uint64_t posted;
  uint64_t delivered;       /* calls that have begun */
  uint64_t merged;          /* replaced by a later one (KEEP_LATEST) */
  uint64_t dropped_full;    /* for a later one (DROP_OLDEST) */
  uint64_t dropped_stale;   /* the token was dead */
  uint64_t dropped_refused; /* it could not be called: on another thread */
  uint64_t dropped_ended;   /* with the queue */
  uint64_t waiting;
  uint64_t taken;           /* 1: being delivered, and not yet counted above */
  uint64_t waiting_bytes;
  uint64_t peak_items;      /* that ever waited at a time */
  uint64_t peak_bytes;
  uint64_t blocked;         /* posters that wait now */
} cbr_queue_counts;
#define CBR_QUEUE_COUNTS_INIT \
  { sizeof(cbr_queue_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the counts of a live queue.
 *   out  its size field must be set (CBR_QUEUE_COUNTS_INIT)
 * CBR_OK; CBR_E_STALE. Blocking: no. */
cbr_status cbr_queue_statistics(cbr_queue queue, cbr_queue_counts *out);

/* ------------------------------------------------------------- Sessions -- */

/* A session is work with one delegate, in pieces that are tasks, and with an
 * end. Whoever does the work says what happens by cbr_task_respond,
 * cbr_task_data and cbr_task_complete; the delegate is told.
 *
 * The delegate is a token with the interface that cbr_session_interface gives.
 * Its methods, in this order; all but did_complete may be absent (NULL): */
enum {
  CBR_DID_RECEIVE_RESPONSE = 0,
  CBR_DID_RECEIVE_DATA = 1,
  CBR_DID_COMPLETE = 2,
  CBR_DID_BECOME_INVALID = 3,
  CBR_DID_HAND_OVER = 4,
  CBR_SESSION_METHODS = 5
};

/* The task has a response, and wants to know how to go on: until
 * cbr_reply_send is called for reply, here or later and on any thread, data
 * is held back. Absent: CBR_ALLOW.
 *   response, size  what cbr_task_respond was given; NULL, 0 where that was
 *                   nothing; valid until it returns */
typedef void (*cbr_did_receive_response)(void *context, cbr_task task,
                                         const void *response, size_t size,
                                         cbr_reply reply);

/* The task has data. Absent: it is dropped, or only gathered.
 *   bytes, size  valid until it returns */
typedef void (*cbr_did_receive_data)(void *context, cbr_task task,
                                     const void *bytes, size_t size);

/* The task is complete: exactly once, after all else that is told of it (G24).
 * When it has returned the task is dead, and its context is destroyed.
 *   error  what cbr_task_complete was given; else CBR_TASK_... */
typedef void (*cbr_did_complete)(void *context, cbr_task task, int error);

/* The session has ended: exactly once, after the last did_complete (G24). When
 * it has returned the session no longer holds its delegate. Absent: nothing.
 *   reason  CBR_REASON_ENDED after cbr_session_finish, CBR_REASON_CANCELLED
 *           after cbr_session_cancel, else that of its end */
typedef void (*cbr_did_become_invalid)(void *context, cbr_session session,
                                       cbr_reason reason);

/* The reply has handed the task over: the rest of it, did_complete included,
 * is told to the successor. Told to the one before. Absent: nothing. */
typedef void (*cbr_did_hand_over)(void *context, cbr_task task,
                                  cbr_token successor);

enum {
  CBR_TASK_CANCELLED = INT32_MIN,
  CBR_TASK_DELEGATE_GONE = INT32_MIN + 1, /* nobody could be told */
  CBR_TASK_TIMED_OUT = INT32_MIN + 2
};

/* Returns the interface of delegates, for cbr_registration. Static. */
const cbr_interface *cbr_session_interface(void);

typedef struct cbr_session_options {
  size_t size;
  const char *label;   /* at most 255 bytes; NULL: "" */
  cbr_token delegate;  /* with the interface of cbr_session_interface */
  cbr_owner owner;     /* what it belongs to and ends with; CBR_NONE: the
                          registry */
  uint32_t flags;      /* 0 */
  uint32_t line;
  const char *file;    /* the site; at most 1023 bytes */
  cbr_queue queue;     /* where the delegate is told; CBR_NONE: see Threads */
} cbr_session_options;
#define CBR_SESSION_OPTIONS_INIT \
  { sizeof(cbr_session_options), NULL, CBR_NONE, CBR_NONE, 0, CBR_HERE, \
    CBR_NONE }

/* Makes a session. It holds its delegate by a lease until did_become_invalid
 * has returned (G23), so it must be ended: by cbr_session_finish or
 * cbr_session_cancel; by cbr_invalidate, or with its owner, it is cancelled.
 * When its delegate is ended from outside, which its own registry's close does
 * too, the session cancels itself, and what nobody could be told of is
 * recorded as undelivered.
 *   options  borrowed
 *   out      receives the session
 * CBR_OK; CBR_E_INVALID; CBR_E_STALE, CBR_E_INTERFACE, CBR_E_FOREIGN the
 * delegate is dead, no delegate, of another registry; CBR_E_DYING;
 * CBR_E_NOMEM; CBR_E_LIMIT.
 * Threads. Events of one session are told one at a time: where it has a queue,
 * by whoever delivers there, besides that queue's messages and outside of its
 * bounds (one that always has more leaves all others their turn); else on the
 * thread that makes one, or on one that is telling another at that moment,
 * when that has returned. No lock is held: a delegate may do anything. When
 * the queue is ended, the session cancels itself at its next event, and what
 * nobody could be told of is recorded as undelivered. */
CBR_WARN_UNUSED
cbr_status cbr_session_create(cbr_registry registry,
                              const cbr_session_options *options,
                              cbr_session *out);

/* Ends a session when its tasks are complete: no new ones begin.
 * CBR_OK; CBR_ALREADY it had begun to end. Blocking: no. */
cbr_status cbr_session_finish(cbr_session session);

/* Cancels a session's tasks, and ends it. One that was told to finish can
 * still be cancelled.
 * CBR_OK; CBR_ALREADY it was cancelled before, or is gone. Blocking: no. */
cbr_status cbr_session_cancel(cbr_session session);

enum {
  CBR_TASK_GATHER = 1u  /* keeps all data until did_complete has returned */
};

typedef struct cbr_task_options {
  size_t size;
  const char *label;     /* at most 255 bytes; NULL: "" */
  void *context;         /* passed on, never looked into */
  cbr_destroy destroy;   /* frees the context when the task is gone; may be
                            NULL */
  uint32_t flags;        /* CBR_TASK_GATHER */
  uint32_t line;
  const char *file;      /* the site; at most 1023 bytes */
  uint64_t max_waiting_bytes; /* of data that is held back or has not been
                                 told; 0: 1 MiB */
  uint64_t timeout_ns;       /* from its beginning; 0: none */
  uint64_t reply_timeout_ns; /* of its reply, from when did_receive_response is
                                called; 0: none */
  cbr_disposition unanswered; /* how a task goes on whose reply was not sent in
                                 that time, or was ended before it was sent:
                                 CBR_ALLOW, CBR_CANCEL; 0: CANCEL */
  uint32_t reserved;         /* 0 */
} cbr_task_options;
#define CBR_TASK_OPTIONS_INIT \
  { sizeof(cbr_task_options), NULL, NULL, NULL, 0, CBR_HERE, 0, 0, 0, 0, 0 }

/* Begins a task.
 *   options  borrowed; NULL: no label, no context
 *   out      receives the task; it is dead when its did_complete has returned
 * CBR_OK; CBR_E_CLOSED the session has begun to end (G25), or there is a
 * timeout and its queue has ended; CBR_E_INVALID, also for a timeout where the
 * session has no queue; CBR_E_NOMEM; CBR_E_LIMIT. On failure the context stays
 * yours.
 * Timeouts are by the monotonic clock, and need the session's queue: who
 * delivers there, its thread or a cbr_queue_run, does what is due, as soon as
 * it is back from what it delivers. Until then the task can still be
 * completed, and the reply sent: what comes first counts.
 * A task whose time is over is cancelled: what has not been told is dropped,
 * and recorded as undelivered; did_complete says CBR_TASK_TIMED_OUT; in the
 * history it ended for CBR_REASON_TIMED_OUT. A task that waits for a reply
 * whose time is over goes on as `unanswered` says: CBR_CANCEL is the same end,
 * CBR_ALLOW lets its data flow. The reply ends for CBR_REASON_TIMED_OUT, and
 * is found in the view `unanswered`, with its age. When the queue ends first,
 * the session cancels itself at once. */
CBR_WARN_UNUSED
cbr_status cbr_task_begin(cbr_session session, const cbr_task_options *options,
                          cbr_task *out);

/* Says that a task has a response; once, and before any data.
 *   response, size  copied; may be NULL, 0
 * CBR_OK; CBR_ALREADY it has begun; CBR_E_CLOSED it is complete or cancelled;
 * CBR_E_STALE; CBR_E_NOMEM; CBR_E_LIMIT. */
cbr_status cbr_task_respond(cbr_task task, const void *response, size_t size);

/* Gives a task data. It is copied only when it cannot be told at once.
 * CBR_OK; CBR_E_FULL it would have to wait, and be more than max_waiting_bytes
 * with what does: nothing was taken; CBR_E_CLOSED it is complete or cancelled;
 * CBR_E_INVALID size is 0; CBR_E_STALE; CBR_E_NOMEM. */
cbr_status cbr_task_data(cbr_task task, const void *bytes, size_t size);

/* Completes a task; what was given before is told before.
 *   error  0, or the program's own
 * CBR_OK; CBR_ALREADY it is complete or cancelled. */
cbr_status cbr_task_complete(cbr_task task, int error);

/* Cancels a task: what has not been told is dropped, and recorded as
 * undelivered; did_complete says CBR_TASK_CANCELLED. It may be called from
 * inside the task's own data (G28).
 * CBR_OK; CBR_ALREADY its did_complete is on its way or has been. */
cbr_status cbr_task_cancel(cbr_task task);

/* Returns a task's context; NULL when the task is dead. Inside of what its
 * delegate is told it is there. */
void *cbr_task_context(cbr_task task);

/* Gives what a task with CBR_TASK_GATHER has been given so far.
 *   bytes, size  set; valid until more comes, in did_complete until that
 *                returns; NULL, 0 where there is nothing
 * CBR_OK; CBR_E_STALE. */
cbr_status cbr_task_gathered(cbr_task task, const void **bytes, size_t *size);

/* Says how a task goes on that has a response, once.
 *   disposition  CBR_ALLOW its data flows; CBR_CANCEL it is cancelled;
 *                CBR_HAND_OVER the rest of it goes to the successor
 *   successor    with CBR_HAND_OVER a delegate's token; else CBR_NONE
 * CBR_OK; CBR_E_CONSUMED it was sent before (cbr_last_error says when);
 * CBR_E_STALE its time was over, or its task is (cbr_last_error says why it
 * ended); CBR_E_CLOSED the task was cancelled; CBR_E_INVALID; of the successor
 * CBR_E_STALE, CBR_E_INTERFACE, CBR_E_FOREIGN, and the reply can still be
 * sent; CBR_E_NOMEM. A reply that is never sent is found in the history's view
 * `unanswered`. Where its handle is ended by cbr_invalidate, a task that waits
 * for it goes on at once as `unanswered` of cbr_task_options says: 0 is
 * CBR_CANCEL, and did_complete says CBR_TASK_CANCELLED. */
cbr_status cbr_reply_send(cbr_reply reply, cbr_disposition disposition,
                          cbr_token successor);

/* ---------------------------------------------------------- Completions -- */

/* A callback that happens exactly once.
 *   context  of its registration
 *   error    what cbr_completion_send was given, else default_error
 *   value    what cbr_completion_send was given, else NULL */
typedef void (*cbr_completed)(void *context, int error, void *value);

/* Makes a completion: what must be called exactly once is called by the first
 * cbr_completion_send, or, when its handle ends before that (with its owner,
 * by cbr_invalidate, by the registry's close), with default_error (G27). Then
 * its destroy runs.
 *   what           borrowed; function is a cbr_completed; no interface, no
 *                  type_tag, no flags
 *   default_error  for who never hears
 *   out            receives the completion, a handle of kind CBR_KIND_REPLY
 * As cbr_register. One that nothing was sent to is found in the history's view
 * `unanswered`, with label, site and age. */
CBR_WARN_UNUSED
cbr_status cbr_completion_create(cbr_registry registry,
                                 const cbr_registration *what,
                                 int default_error, cbr_reply *out);

/* Calls a completion, on the calling thread, before it returns.
 *   error, value  passed on
 * CBR_OK; CBR_E_CONSUMED one was sent before (cbr_last_error says when);
 * CBR_E_STALE it has ended, its time was over (cbr_last_error says why);
 * CBR_E_KIND the reply is of a task. */
cbr_status cbr_completion_send(cbr_reply completion, int error, void *value);

/* Says by when something must have been sent to a completion: else it ends,
 * for CBR_REASON_TIMED_OUT, and is called with its default_error, exactly once
 * as ever (G27), by who delivers on a queue.
 *   queue       live, of the same registry; CBR_NONE with 0. When it ends
 *               first, so does the completion, for CBR_REASON_QUEUE_ENDED
 *   timeout_ns  from now, by the monotonic clock, instead of what was said
 *               before; 0: no more
 * CBR_OK; CBR_E_INVALID; CBR_E_CONSUMED something was sent; CBR_E_STALE it has
 * ended, or the queue is dead (cbr_last_error says which); CBR_E_KIND the
 * reply is of a task, or the queue is no queue; CBR_E_FOREIGN; CBR_E_NOMEM;
 * then nothing has changed.
 * After CBR_OK what was said before does not count, also where that time was
 * over. Any thread. Blocking: no. */
CBR_WARN_UNUSED
cbr_status cbr_completion_set_timeout(cbr_reply completion, cbr_queue queue,
                                      uint64_t timeout_ns);

/* ------------------------------------------------------------- Cookies -- */

/* For code that cannot be changed and takes a function and a void *: give it
 * the token as the pointer, and as the function a trampoline (CBR_TRAMPOLINE
 * makes one). A late call then finds a number that is compared and never
 * followed. */

/* Returns a token as a pointer, which points at nothing and is not to be
 * followed; CBR_NONE is NULL. Any value may be given.
 * Threads: any; async-signal-safe. */
void *cbr_cookie(cbr_token token);

/* Returns the token that a pointer stands for. Of any other pointer, dangling
 * ones included, it returns a number that every function answers with a
 * status (G1): the pointer is not followed.
 * Threads: any; async-signal-safe. */
cbr_token cbr_from_cookie(const void *cookie);

/* -------------------------------------------------------------- Thunks -- */

/* For code that cannot be changed and takes a function alone: a thunk is a
 * plain C function that is bound to a token. Its address is always safe to
 * call (G29): after its token's end or its own, inside of either, on a thread
 * that never used the library, after the registry was closed, in a forked
 * child. What cannot be called returns the declared default.
 *
 * No address is given out twice in a process, so a late caller never meets
 * another thunk, and is always answered with the default that its own was
 * made with. A refusal is recorded with the token's registration when the
 * token is dead, and with the thunk's own when that is, as long as the
 * registry is open. Which thunk it was is known at least until 262 144 other
 * thunks of the process have ended (or as many as the environment variable
 * CBR_THUNK_QUARANTINE says when the first is made; text that is no decimal
 * number says nothing); later calls still return the default, and are not
 * recorded. Ended thunks cost eight bytes each until then, and nothing
 * afterwards.
 * There are 67 million addresses; each signature with its default takes 8192
 * at a time, and there may be 2048 of these. What is used up is CBR_E_LIMIT.
 * No page is ever writable and executable. */

/* A type of a described signature. */
typedef enum cbr_type_kind {
  CBR_TYPE_VOID = 0,          /* as a result only */
  CBR_TYPE_BOOL = 1,
  CBR_TYPE_INT8 = 2,
  CBR_TYPE_UINT8 = 3,
  CBR_TYPE_INT16 = 4,
  CBR_TYPE_UINT16 = 5,
  CBR_TYPE_INT32 = 6,         /* int, and enumerations as a rule */
  CBR_TYPE_UINT32 = 7,
  CBR_TYPE_INT64 = 8,
  CBR_TYPE_UINT64 = 9,
  CBR_TYPE_FLOAT = 10,
  CBR_TYPE_DOUBLE = 11,
  CBR_TYPE_POINTER = 12,
  CBR_TYPE_STRUCT = 13,       /* by value; one of count fields */
  CBR_TYPE_LONG_DOUBLE = 32,  /* these three are CBR_E_UNSUPPORTED */
  CBR_TYPE_COMPLEX = 33,
  CBR_TYPE_VARIADIC = 34,
  /* What the compiler at hand takes for: */
  CBR_TYPE_LONG = sizeof(long) == 8 ? CBR_TYPE_INT64 : CBR_TYPE_INT32,
  CBR_TYPE_SIZE = sizeof(size_t) == 8 ? CBR_TYPE_UINT64 : CBR_TYPE_UINT32
} cbr_type_kind;

typedef struct cbr_type {
  uint32_t kind;                  /* CBR_TYPE_... */
  uint32_t count;                 /* of a structure's fields; else 0 */
  const struct cbr_type *fields;  /* an array in it is as many of them */
} cbr_type;

/* Where the token's context goes. */
enum {
  CBR_CONTEXT_FIRST = 0, /* before the arguments */
  CBR_CONTEXT_LAST = -1, /* behind them */
  CBR_CONTEXT_NONE = -2  /* the function asks cbr_current_context */
};

/* What a thunk is called with. */
typedef struct cbr_signature {
  size_t size;
  cbr_type result;
  const cbr_type *arguments; /* without the context */
  uint32_t count;            /* of them; at most 32 */
  int32_t context;           /* CBR_CONTEXT_..., or which argument of the
                                token's function it is, from 0 */
  const void *otherwise;     /* a value of the result's type: the default,
                                returned when nothing is called; NULL: of
                                zeros */
  const char *label;         /* at most 255 bytes; NULL: the token's */
  uint64_t type_tag;         /* of the token; 0: it has none */
  uint32_t reserved;         /* 0 */
  uint32_t line;
  const char *file;          /* the site; at most 1023 bytes */
} cbr_signature;
#define CBR_SIGNATURE_INIT                                                 \
  { sizeof(cbr_signature), { CBR_TYPE_VOID, 0, NULL }, NULL, 0,            \
    CBR_CONTEXT_FIRST, NULL, NULL, 0, 0, CBR_HERE }

/* Makes a thunk: a function that calls the token's function, with the context
 * besides its own arguments. It belongs to what the token belongs to, and ends
 * with that, or by cbr_invalidate; when the token alone ends, it stays and
 * returns the default.
 *   token      live, of the same registry; a function's, of the described type
 *              with the context as a void *. What it asks of a call (to be on
 *              its thread, to be the first) it asks here too
 *   signature  borrowed, with all that it points to, and copied
 *   out        receives the thunk, a handle of kind CBR_KIND_THUNK
 * CBR_OK; CBR_E_INVALID the signature is wrong (cbr_last_error names the
 * argument); CBR_E_UNSUPPORTED an argument or the result is a long double, a
 * complex number or variadic, has too many fields (some 250) or nests them too
 * deeply (8), or there are too many; or the system or processor is one that
 * lets no program make code; CBR_E_INTERFACE the token has an interface,
 * another type tag, or is a signal's; CBR_E_STALE, CBR_E_FOREIGN,
 * CBR_E_KIND of the token; CBR_E_DYING; CBR_E_NOMEM; CBR_E_LIMIT.
 * Waiting for a thunk waits for the calls that came through it. Blocking: no.
 * A call through it may come where cbr_enter may be called: from any thread,
 * but not in a signal handler. longjmp out of it: see cbr_unwind. No C++
 * exception may leave it. Cost: some eight times what cbr_enter and cbr_leave
 * cost (Benchmarks/thunks.c). */
CBR_WARN_UNUSED
cbr_status cbr_thunk_create(cbr_registry registry, cbr_token token,
                            const cbr_signature *signature, cbr_thunk *out);

/* Returns a live thunk's address, to be cast to the described type; NULL when
 * the thunk is dead (cbr_last_error says why). It stays what it is for as long
 * as the process lives. */
cbr_function cbr_thunk_function(cbr_thunk thunk);

/* Returns the context of the thunk's call that the calling thread is inside
 * of, the innermost one; NULL outside of any. For functions whose signature
 * has no place for it (CBR_CONTEXT_NONE). */
void *cbr_current_context(void);

/* -------------------------------------------------------------- History -- */

/* Sets how much a registry (and every token in it) or one token writes to the
 * history. What the history knows of is followed to its end, even when it is
 * off by then; but refusals are not recorded while the registry is off.
 * CBR_OK; CBR_E_INVALID no such level. */
cbr_status cbr_audit_level(cbr_handle handle, uint32_t level);

/* Adds the program's own remark to the history.
 *   token  what it is about; live, dead, or CBR_NONE
 *   text   at most 4095 bytes
 * CBR_OK; CBR_E_INVALID; CBR_E_FOREIGN; CBR_E_AUDIT it could not be kept. */
cbr_status cbr_audit_note(cbr_registry registry, cbr_token token,
                          const char *text);

enum {
  CBR_FLUSH_RING = 1,      /* in the recorder */
  CBR_FLUSH_DATABASE = 2,  /* committed */
  CBR_FLUSH_DISK = 3       /* synced */
};

/* Waits until all events whose calls returned before are kept.
 *   achieved  receives the number of events kept there; may be NULL
 * CBR_OK; CBR_E_INVALID; CBR_E_TIMEOUT; CBR_E_AUDIT the history cannot be
 * written; CBR_E_WOULD_DEADLOCK called by cbr_history_changed. Legal in
 * callbacks and atexit handlers. Blocking: up to timeout_ns. */
cbr_status cbr_audit_flush(cbr_registry registry, uint32_t level,
                           uint64_t timeout_ns, uint64_t *achieved);

/* --------------------------------------------------------- Conveniences -- */

/* Registers one function in one line, with the site of this line:
 *   CBR_REGISTER(registry, "progress", on_progress, state, free, owner,
 *                &token)
 * Where destroy is NULL, free what context points at after
 * cbr_invalidate_wait, not after cbr_invalidate.
 * Evaluates to the cbr_status of cbr_register. */
#define CBR_REGISTER(registry, label, function, context, destroy, owner, out) \
  cbr_register_here_((registry), (label),                                     \
                     CBR_FUNCTION_CAST_(cbr_function, function),              \
                     (context), (destroy), (owner), CBR_HERE, (out))

/* Calls a token's function if it is live:
 *   CBR_CALL(token, void (*)(void *, int), (cbr_now.context, 42));
 * Inside the arguments, cbr_now is the cbr_call. A statement; a refused call
 * does nothing. Do not leave it by return, break or goto. */
#define CBR_CALL(token, type, arguments)                               \
  for (cbr_call cbr_now = CBR_CALL_INIT; cbr_next_(&cbr_now, (token)); \
       cbr_last_(&cbr_now))                                            \
  (CBR_FUNCTION_CAST_(type, cbr_now.function)) arguments

/* Like CBR_CALL; result, an lvalue, receives what the function returns and is
 * left alone when the call is refused. */
#define CBR_CALL_RESULT(result, token, type, arguments)                \
  for (cbr_call cbr_now = CBR_CALL_INIT; cbr_next_(&cbr_now, (token)); \
       cbr_last_(&cbr_now))                                            \
  (result) = (CBR_FUNCTION_CAST_(type, cbr_now.function)) arguments

#if defined(__GNUC__)
/* Declares an owner that ends with the scope it is declared in, however that
 * is left but by longjmp, as cbr_invalidate_wait does with CBR_FOREVER:
 *   CBR_SCOPED_OWNER(owner, registry, "what is in this block");
 * It is CBR_NONE when it could not be made, and cbr_last_error says why: then
 * what is registered on it belongs to the registry, so look. Declare it after
 * what its callbacks use. */
#define CBR_SCOPED_OWNER(name, registry, label)             \
  __attribute__((cleanup(cbr_end_scope_))) cbr_owner name = \
      cbr_owner_here_((registry), (label))

static inline cbr_owner cbr_owner_here_(cbr_registry registry,
                                        const char *label) {
  cbr_owner owner;
  cbr_status status = cbr_owner_create(registry, label, &owner);
  return status == CBR_OK ? owner : CBR_NONE;
}

static inline void cbr_end_scope_(const cbr_owner *owner) {
  cbr_status status = CBR_OK;
  if (*owner != CBR_NONE)
    status = cbr_invalidate_wait(*owner, CBR_REASON_ENDED, CBR_FOREVER);
  (void)status;
}
#endif

/* Defines a trampoline, for an interface that takes a function and a void *:
 *   CBR_TRAMPOLINE(on_bytes, size_t, 0,
 *                  (char *bytes, size_t size, size_t count, void *cookie),
 *                  cookie, (bytes, size, count, cbr_now.context))
 *   curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
 *   curl_easy_setopt(curl, CURLOPT_WRITEDATA, cbr_cookie(token));
 *   name        a static function of this name is defined; inline or extern
 *               "C" may stand before the macro
 *   result      what it returns
 *   otherwise   what it returns when the token is not called (G29). In
 *               parentheses where it has a comma: ((struct pair){0, 1})
 *   parameters  with their names, in parentheses
 *   cookie      an expression of the parameters: what cbr_cookie gave
 *   arguments   for the token's function, in parentheses; cbr_now is the
 *               cbr_call, and cbr_now.context the context
 * The token's function must have the same type as the trampoline. As of
 * cbr_enter, each refusal is recorded with the registration that the token
 * once named; and a trampoline may be called where cbr_enter may. Neither
 * longjmp nor an exception leaves the call; cbr::trampoline of
 * callback_registry.hpp does after an exception. */
#define CBR_TRAMPOLINE(name, result, otherwise, parameters, cookie, \
                       arguments)                                   \
  static result name parameters {                                   \
    cbr_call cbr_now = CBR_CALL_INIT;                               \
    if (cbr_enter(cbr_from_cookie(cookie), &cbr_now) != CBR_OK)     \
      return otherwise;                                             \
    result cbr_result =                                             \
        (CBR_FUNCTION_CAST_(result (*) parameters,                  \
                            cbr_now.function)) arguments;           \
    (void)cbr_leave(&cbr_now);                                      \
    return cbr_result;                                              \
  }

/* The same of a trampoline that returns nothing. */
#define CBR_TRAMPOLINE_VOID(name, parameters, cookie, arguments) \
  static void name parameters {                                  \
    cbr_call cbr_now = CBR_CALL_INIT;                            \
    if (cbr_enter(cbr_from_cookie(cookie), &cbr_now) != CBR_OK)  \
      return;                                                    \
    (CBR_FUNCTION_CAST_(void (*) parameters,                     \
                        cbr_now.function)) arguments;            \
    (void)cbr_leave(&cbr_now);                                   \
  }

/* Trampolines for common shapes; the token's function must have that type.
 * What each returns when the token is not called stands beside it.
 *   cbr_trampoline_notice   nothing: timers, idle work, clean-up
 *   cbr_trampoline_event    nothing: an object and what was given for it, as
 *                           GLib's signals
 *   cbr_trampoline_start    NULL: pthread_create, and others that return a
 *                           pointer
 *   cbr_trampoline_step     0: whatever returns an int and has no arguments
 *   cbr_trampoline_compare  0: qsort_r, whose elements are then all equal
 *   cbr_trampoline_bytes    0: libcurl's write and read functions, whose
 *                           transfer ends then
 *   cbr_trampoline_row      1: sqlite3_exec, which aborts then */
inline CBR_TRAMPOLINE_VOID(cbr_trampoline_notice, (void *cookie), cookie,
                           (cbr_now.context))
inline CBR_TRAMPOLINE_VOID(cbr_trampoline_event, (void *object, void *cookie),
                           cookie, (object, cbr_now.context))
inline CBR_TRAMPOLINE(cbr_trampoline_start, void *, NULL, (void *cookie),
                      cookie, (cbr_now.context))
inline CBR_TRAMPOLINE(cbr_trampoline_step, int, 0, (void *cookie), cookie,
                      (cbr_now.context))
inline CBR_TRAMPOLINE(cbr_trampoline_compare, int, 0,
                      (const void *left, const void *right, void *cookie),
                      cookie, (left, right, cbr_now.context))
inline CBR_TRAMPOLINE(cbr_trampoline_bytes, size_t, 0,
                      (char *bytes, size_t size, size_t count, void *cookie),
                      cookie, (bytes, size, count, cbr_now.context))
inline CBR_TRAMPOLINE(cbr_trampoline_row, int, 1,
                      (void *cookie, int count, char **values, char **names),
                      cookie, (cbr_now.context, count, values, names))

static inline cbr_status cbr_register_here_(
    cbr_registry registry, const char *label, cbr_function function,
    void *context, cbr_destroy destroy, cbr_owner owner, uint32_t line,
    const char *file, cbr_token *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = label;
  what.function = function;
  what.context = context;
  what.destroy = destroy;
  what.owner = owner;
  what.line = line;
  what.file = file;
  return cbr_register(registry, &what, out);
}

static inline bool cbr_next_(cbr_call *call, cbr_token token) {
  return call->disposition == 0 && cbr_enter(token, call) == CBR_OK;
}

static inline void cbr_last_(cbr_call *call) {
  (void)cbr_leave(call);
  call->disposition = 1;
}

#ifdef __cplusplus
}
#endif

#endif
