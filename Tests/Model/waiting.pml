/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that wait for endings: from outside, from inside the call that
 * they end, in rings, and from inside a destroy function.
 *
 * Under one lock a waiter registers what it waits for and looks again and
 * again, until the token is gone, or all that is left of it is its own
 * (DEFERRED), or it finds that it waits for itself by way of other threads
 * (WOULD_DEADLOCK). In between it sleeps. Whoever changes something that a
 * waiter looks at wakes them all.
 *
 * While a thread runs a destroy function it pins the token. The search for
 * rings follows the pins, and by way of such a pin what that thread has
 * claimed and will destroy afterwards. */

#define OWNERS
#define NONE 7
#define PARKS 6                 /* it stops after the mark */
#define LEASES 5                /* it leases what it calls */

/* run_threads: number, the slot it calls, the slots it ends, the one it then
 * waits for. hook(slot): what its destroy function ends and waits for. */
#if defined(RING)               /* each is inside what the next one ends */
#define MEET
#define THREADS RING
#define SLOTS RING
#define run_threads() \
  run Thread(0, 0, bit(1), 1); \
  run Thread(1, 1, bit(2 % RING), 2 % RING); \
  if \
  :: RING == 3 -> run Thread(2, 2, bit(0), 0) \
  :: else \
  fi
#elif defined(LOOSE_RING)       /* the same, if they happen to meet */
#define THREADS 2
#define SLOTS 2
#define run_threads() \
  run Thread(0, 0, bit(1), 1); \
  run Thread(1, 1, bit(0), 0)
#elif defined(CHAIN)            /* a wait for one that waits */
#define THREADS 3
#define SLOTS 3
#define NO_RING
#define run_threads() \
  run Thread(0, 0, bit(1), 1); \
  run Thread(1, 1, bit(2), 2); \
  run Thread(2, 2, 0, NONE)
#elif defined(SAME)             /* both inside the same call */
#define MEET
#define THREADS 2
#define SLOTS 1
#define run_threads() \
  run Thread(0, 0, bit(0), 0); \
  run Thread(1, 0, bit(0), 0)
#elif defined(CROSS)            /* two rings that share a thread */
#define THREADS 3
#define SLOTS 2
#define run_threads() \
  run Thread(0, 0, bit(1), 1); \
  run Thread(1, 1, bit(0), 0); \
  run Thread(2, 0, bit(1), 1)
#elif defined(CROWD)            /* two wait, one calls */
#define THREADS 3
#define SLOTS 1
#define NO_RING
#define run_threads() \
  run Thread(0, NONE, bit(0), 0); \
  run Thread(1, NONE, bit(0), 0); \
  run Thread(2, 0, 0, NONE)
#elif defined(OWN)              /* inside its own, and so is another */
#define THREADS 2
#define SLOTS 1
#define NO_RING
#define run_threads() \
  run Thread(0, 0, bit(0), 0); \
  run Thread(1, 0, 0, NONE)
#elif defined(OWN_ENDED)        /* the same, and a third one ends it */
#define THREADS 3
#define SLOTS 1
#define NO_RING
#define run_threads() \
  run Thread(0, 0, bit(0), 0); \
  run Thread(1, 0, 0, NONE); \
  run Thread(2, NONE, bit(0), NONE)
#elif defined(PARKED)           /* waits for what another parks */
#define LIMBO
#define THREADS 2
#define SLOTS 1
#define NO_RING
#define run_threads() \
  run Thread(0, NONE, bit(0), PARKS); \
  run Thread(1, NONE, bit(0), 0)
#elif defined(LEASED)           /* waits for what another leases */
#define THREADS 2
#define SLOTS 1
#define NO_RING
#define run_threads() \
  run Thread(0, NONE, bit(0), 0); \
  run Thread(1, 0, 0, LEASES)
#elif defined(DESTROY_RING)     /* a destroy waits for who waits for it */
#define THREADS 2
#define SLOTS 2
#define hook(slot) ((slot) == 0 -> 1 : NONE)
#define run_threads() \
  run Thread(0, NONE, bit(0), NONE); \
  run Thread(1, 1, bit(0), 0)
#elif defined(DESTROY_OWN)      /* a destroy waits for its own token */
#define THREADS 2
#define SLOTS 1
#define NO_RING
#define hook(slot) 0
#define run_threads() \
  run Thread(0, 0, 0, NONE); \
  run Thread(1, NONE, bit(0), 0)
#elif defined(GROUP)            /* ... for another of the same group */
#define THREADS 2
#define SLOTS 2
#define NO_RING
#define hook(slot) ((slot) == 0 -> 1 : NONE)
#define run_threads() \
  run Thread(0, NONE, bit(0) | bit(1), NONE); \
  run Thread(1, 1, bit(1), 1)
#elif defined(GROUP_RING)       /* ... for one who waits for another of it */
#define THREADS 2
#define SLOTS 3
#define hook(slot) ((slot) == 0 -> 2 : NONE)
#define run_threads() \
  run Thread(0, NONE, bit(0) | bit(1), NONE); \
  run Thread(1, 2, bit(1), 1)
#elif defined(GROUP_FAMILY)     /* ... for their owner, as another one does */
#define THREADS 2
#define SLOTS 3
#define FAMILY 2
#define hook(slot) ((slot) == 1 -> 0 : NONE)
#define run_threads() \
  run Thread(0, NONE, bit(0) | bit(1) | bit(2), NONE); \
  run Thread(1, 2, bit(0) | bit(1) | bit(2), 0)
#elif defined(FAMILY_RING)      /* waits for an owner, other inside a child */
#define MEET
#define THREADS 2
#define SLOTS 3
#define FAMILY 1
#define run_threads() \
  run Thread(0, 2, bit(0) | bit(1), 0); \
  run Thread(1, 1, bit(2), 2)
#elif defined(FAMILY_OWN)       /* inside a child of what it ends */
#define THREADS 2
#define SLOTS 2
#define NO_RING
#define FAMILY 1
#define run_threads() \
  run Thread(0, 1, bit(0) | bit(1), 0); \
  run Thread(1, 1, 0, NONE)
#elif defined(FAMILY_ENDED)     /* the same, and another one ends it */
#define THREADS 2
#define SLOTS 2
#define NO_RING
#define FAMILY 1
#define run_threads() \
  run Thread(0, 1, bit(0) | bit(1), 0); \
  run Thread(1, NONE, bit(0) | bit(1), NONE)
#elif defined(FAMILY_CLAIMED)   /* another one claims the other child */
#define THREADS 2
#define SLOTS 3
#define NO_RING
#define FAMILY 2
#define run_threads() \
  run Thread(0, 2, bit(0) | bit(1) | bit(2), 0); \
  run Thread(1, NONE, bit(0) | bit(1) | bit(2), NONE)
#endif

#ifdef hook
#define HOOKS
#define CELLS 3
#define prepare(token) run_hook(token)
#else
#define CELLS 1
#endif
#define conclude(token) wake_after_free()

#ifdef FAMILY
#define container(slot) ((slot) == 0)
#endif

#define PINNERS THREADS
#define changed() wake()
#define note_claim(token) \
  claims[me] = claims[me] | bit(slot_of(token))
#define note_free(token) \
  claims[me] = claims[me] & ~bit(slot_of(token))

byte claims[THREADS];           /* slots it has claimed and not yet freed */

#include "steps.pml"

byte waiting[THREADS];          /* the slots it waits for; under the lock */
byte waiters;                   /* who waits; written under the lock */
byte asleep;
bool wait_locked;

/* For the assertions. */
byte within[THREADS];           /* slots it calls */
byte awaits[THREADS];           /* as `waiting`, but what is so */
byte met, rings;

/* Frames of user code on a thread's stack, above the first. */
byte nested[THREADS];

mtype = { pending, ok, deferred, would_deadlock };

inline lock() {
  atomic { full_fence(me) && !wait_locked -> wait_locked = true }
}

inline unlock() {
  wait_locked = false
}

/* A waiter registers before it looks, so a thread that changes something
 * and then finds no waiter has changed it before any of them looks. */
inline wake() {
  if
  :: waiters != 0 ->
#ifdef WAKE_WITHOUT_LOCK
     asleep = 0
#else
     atomic { !wait_locked -> asleep = 0 }                  /* wait.wake */
#endif
  :: else
  fi
}

inline wake_after_free() {
#ifdef DESTROY_WITHOUT_WAKE
  skip
#else
#ifndef FREE_WITHOUT_FENCE
  full_fence(me);                                           /* free.fence */
#endif
  wake()                                                    /* free.wake */
#endif
}

#ifdef HOOKS
/* The destroy function ends another token and waits for it. */
inline run_hook(token) {
  if
  :: hook(slot_of(token)) != NONE ->
#ifndef DESTROYER_WITHOUT_PIN
     store(me, 1 + level, token);                           /* destroy.pin */
#endif
     nested[me]++;
     run Frame(me, level + 1, hook(slot_of(token)));
     nested[me] == level;
#ifndef DESTROYER_WITHOUT_PIN
     store(me, 1 + level, 0)                                /* destroy.clear */
#endif
  :: else
  fi
}
#endif

/* The slots that must be gone before an ending of `place` is complete. */
#define child_bit(place, child) \
  (parent[child] == token_of(place, 1) -> bit(child) : 0)
#if defined(FAMILY) && !defined(CHILDREN_NOT_FOLLOWED)
#define members_of(place) \
  (bit(place) | child_bit(place, 1) | child_bit(place, SLOTS - 1))
#else
#define members_of(place) bit(place)
#endif

#define slot_bit(place) (cell[place] != 0 -> bit(slot_of(cell[place])) : 0)
#if CELLS == 1
#define pins(thread) slot_bit(thread)
#else
#define pins(thread) \
  (slot_bit((thread) * 3) | slot_bit((thread) * 3 + 1) | \
   slot_bit((thread) * 3 + 2))
#endif

/* What a thread has claimed is found by the pin of the destroy that it runs:
 * only there can it be waiting. */
#define runs(place) \
  (cell[place] != 0 && is(cell[place], DESTROYING))
#if !defined(HOOKS) || defined(CLAIMS_NOT_COUNTED)
#define found_claims(thread) 0
#else
#define found_claims(thread) \
  (runs((thread) * 3) || runs((thread) * 3 + 1) || runs((thread) * 3 + 2) \
   -> claims[thread] : 0)
#endif
#define holds_of(thread) (pins(thread) | found_claims(thread))

/* What is left of an owner is not the waiter's own if somebody is about to
 * settle, to claim or to destroy a part of it. Nothing runs under a lease. */
#ifdef FAMILY
#define foreign(place) \
  (place != 0 && (members & bit(place)) && \
   (is(token_of(place, 1), LIVE) || is(token_of(place, 1), DYING) || \
    is_claimed(place) && !(found_claims(me) & bit(place)) || \
    is(token_of(place, 1), DRAINING) && leases[place] == 0 && \
    !(pins(me) & bit(place))))
#define any_foreign (foreign(1) || foreign(SLOTS - 1))
#else
#define any_foreign false
#endif
#ifdef CLAIMED_IS_LEFT
#define is_claimed(place) false
#else
#define is_claimed(place) is(token_of(place, 1), DESTROYING)
#endif

/* Whether this thread is inside, whether another one is, and whether all that
 * is left is its own. */
inline look() {
  d_step { own = holds_of(me) & members; others = false; i = 0 }
  do
  :: d_step {
       i < THREADS ->
       others = others || (i != me && (pins(i) & members));
       i++
     }
  :: else -> break
  od;
  i = 0;
  alone = own != 0 && !others && !any_foreign
}

/* Follows: what is waited for, who is inside, what those wait for. */
#define search(waits, holds) \
  reached = 0; \
  do \
  :: t < THREADS * THREADS -> \
     if \
     :: t % THREADS != me && waits[t % THREADS] != 0 && \
        (holds[t % THREADS] & (members | reached)) -> \
        reached = reached | waits[t % THREADS] \
     :: else \
     fi; \
     t++ \
  :: else -> break \
  od; \
  t = 0

/* One step, for a search uses only what waiting threads hold, and they hold
 * it as long as they are registered. */
inline find_ring() {
  d_step {
    do
    :: t < THREADS -> pinned[t] = holds_of(t); t++
    :: else -> break
    od;
    t = 0;
    search(waiting, pinned);
#ifdef OWN_PINS_COUNTED
    reached = reached | members;
#endif
    if
    :: reached & pinned[me] ->
       result = would_deadlock;
       rings++;
       do
       :: t < THREADS -> pinned[t] = within[t] | claims[t]; t++
       :: else -> break
       od;
       t = 0;
       search(awaits, pinned);
       assert(reached & pinned[me])
    :: else
    fi;
    reached = 0;
    do
    :: t < THREADS -> pinned[t] = 0; t++
    :: else -> break
    od;
    t = 0
  }
}

inline register_wait(place) {
  d_step {
    members = members_of(place);
    waiting[me] = members;                                  /* wait.register */
    awaits[me] = members
  }
}

inline unregister_wait() {
  d_step {
#ifdef GIVER_UP_STAYS
    if
    :: result != would_deadlock -> waiting[me] = 0
    :: else
    fi;
#else
    waiting[me] = 0;
#endif
    awaits[me] = 0;
    waiters = waiters & ~bit(me)
  }
}

/* Says that this thread is about to look. From here on whoever parks a slot
 * settles it at once; what is parked already the waiter settles itself. */
inline begin_wait(place) {
#ifndef REGISTERS_LATE
  d_step { waiters = waiters | bit(me) }                    /* wait.begin */
#endif
#if defined(LIMBO) && !defined(LIMBO_NOT_TAKEN)
  if
  :: limbo != 0 -> settle()                                 /* wait.take */
  :: else
  fi;
#endif
#ifndef LOOKS_UNFENCED
  d_step { members = members_of(place); own = holds_of(me) & members }
  if
  :: own != 0 -> heavy_fence()                              /* wait.fence */
  :: else
  fi;
#endif
  lock();
#ifdef SEARCH_UNREGISTERED
  d_step { members = members_of(place); awaits[me] = members }
  find_ring();
  unlock();
  lock();
#endif
  register_wait(place)
}

inline sleep() {
#ifdef REGISTERS_LATE
  waiters = waiters | bit(me);
#endif
  atomic { asleep = asleep | bit(me); wait_locked = false } /* wait.sleep */
  !(asleep & bit(me));
  lock()
}

/* Waits until the ended slot is destroyed. */
inline wait_for(place) {
  begin_wait(place);
  do
  :: word[place] == next_free(token_of(place, 1)) ->        /* wait.check */
     result = ok;
     break
  :: else ->
     look();                                                /* wait.look */
     if
     :: alone ->
        result = deferred;
        break
     :: else ->
#ifndef SEARCH_UNREGISTERED
        find_ring();                                        /* wait.search */
#endif
        if
        :: result == would_deadlock -> break
        :: else
        fi;
        sleep();
#ifdef CHECKS_ONCE
        result = ok;
        break
#endif
     fi
  od;
  unregister_wait();
  unlock();
  d_step {
    own = 0;
    others = false;
    alone = false;
    do
    :: t < THREADS ->
       assert(result != deferred || t == me ||
              !((within[t] | claims[t]) & members));
       t++
    :: else -> break
    od;
    t = 0;
    assert(result != ok || is_destroyed(token_of(place, 1)));
    assert(result != deferred || ((within[me] | claims[me]) & members));
#ifdef NO_RING
    assert(result != would_deadlock);
#endif
    members = 0;
    result = pending
  }
}

#define wait_locals \
  byte members, own, reached, t, pinned[THREADS]; \
  bool others, alone; \
  mtype result = pending

/* An ending that lost has nothing to settle, and has not fenced. */
#define has_marked \
  (mine[0] != 0 || mine[1 % SLOTS] != 0 || mine[2 % SLOTS] != 0)

inline settle_marked() {
  if
  :: has_marked -> settle()
  :: else
  fi
}

#ifdef HOOKS
proctype Frame(byte me, level, place) {
  locals;
  wait_locals;
  mark(token_of(place, 1), full_fence(me));
  settle_marked();
  wait_for(place);
  nested[me]--
}
#endif

proctype Thread(byte me, call, group, awaited) {
  byte level;
  locals;
  wait_locals;
  if
  :: call != NONE ->
     enter(me, 0, token_of(call, 1));
     if
     :: in -> in = false; within[me] = bit(call)
     :: else
     fi
  :: else
  fi;
#ifdef MEET
  met++;
  met == THREADS;
#endif
  do
  :: level < SLOTS && (group & bit(level)) ->
     mark(token_of(level, 1), full_fence(me));
     level++
  :: level < SLOTS && !(group & bit(level)) -> level++
  :: level == SLOTS -> break
  od;
  level = 0;
  if
#ifdef LEASED
  :: awaited == LEASES ->
     if
     :: within[me] ->
        atomic { full_fence(me) -> leases[0]++; inside[0]++ } /* lease.add */
        within[me] = 0;
        leave(me, 0, token_of(call, 1));
        atomic { inside[0]--; leases[0]-- }                 /* lease.drop */
        try_if_draining(token_of(call, 1))                  /* lease.again */
     :: else
     fi
#endif
#ifdef LIMBO
  :: awaited == PARKS ->
     park();
#ifndef PARK_WITHOUT_LOOK
     if
     :: waiters != 0 -> settle()                            /* park.wait */
     :: else
     fi
#endif
#endif
  :: else ->
     settle_marked();
     if
     :: awaited != NONE -> wait_for(awaited)
     :: else
     fi
  fi;
  if
  :: within[me] -> within[me] = 0; leave(me, 0, token_of(call, 1))
  :: else
  fi;
  finished++
}

init {
  byte n;
  atomic {
    do
    :: n < SLOTS -> word[n] = token_of(n, 1); n++
    :: else -> break
    od;
    n = 0;
#ifdef FAMILY
    parent[1] = token_of(0, 1);
    born_under[1] = parent[1];
    children[0] = FAMILY;
#if FAMILY > 1
    parent[2] = token_of(0, 1);
    born_under[2] = parent[2];
#endif
#endif
    do
    :: n < THREADS -> run Memory(n); n++
    :: else -> break
    od;
    n = 0;
    run_threads()
  }
  finished == THREADS;
#ifdef MEET
  assert(rings == 1);
#endif
  do
  :: n < SLOTS -> assert(word[n] % 8 == LIVE || word[n] % 8 == FREE); n++
  :: else -> break
  od
}
