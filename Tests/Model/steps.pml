/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of calls and endings, shared by all models. The name of a step
 * stands beside it, as it does in the code of the engine.
 *
 * A model that has owners defines OWNERS: see family.pml. Before it includes
 * this file a model may also define
 *   container(slot)     whether the slot is an owner
 *   changed()           what follows when a waiter may have to look again
 *   note_claim(token)   what its assertions must know of a claim,
 *   note_free(token)    and of a slot that is free again
 * All other names in capitals are configurations and mutants: see README. */

#define FREE 0
#define LIVE 1
#define DYING 2                 /* marked; belongs to one settling thread */
#define DRAINING 3              /* marked and fenced; anyone may claim it */
#define DESTROYING 4            /* claimed by one thread */

/* A word is slot, generation and state; the token is the live word. */
#define token_of(slot, generation) ((slot) * 32 + (generation) * 8 + LIVE)
#define in_state(token, state) ((token) - LIVE + (state))
#define slot_of(token) ((token) / 32)
#define generation_of(token) (((token) / 8) % 4)
#define token_in(slot) (word[slot] / 8 * 8 + LIVE)
#define next_free(token) in_state((token) + 8, FREE)
#define is(token, state) (word[slot_of(token)] == in_state(token, state))

#ifndef SLOTS
#define SLOTS 1
#endif

byte word[SLOTS];
byte leases[SLOTS];
byte limbo;                     /* slots parked after the mark; under a lock */

/* What the assertions know and the protocol does not. */
byte inside[SLOTS];             /* calls between enter and leave, and leases */
byte destroyed[SLOTS];          /* a bit for each generation */
byte finished;                  /* threads that are done */

#define bit(slot) (1 << (slot))
#define is_destroyed(token) \
  (destroyed[slot_of(token)] & bit(generation_of(token)))

#include "tso.pml"

/* What a thread needs to run the steps. */
#define locals \
  byte i, limit, fenced, seen, slot, held, owner, target; \
  byte mine[SLOTS];             /* tokens that this thread is to settle */ \
  bool in, was_quiet, won

#ifndef container
#define container(slot) false
#endif
#ifndef note_claim
#define note_claim(token) skip
#define note_free(token) skip
#endif
#ifndef changed
#define changed() skip
#endif

/* --- Destroying ------------------------------------------------------- */

#if defined(LEAVER_DESTROYS_DYING)
#define may_claim(token) (is(token, DRAINING) || is(token, DYING))
#elif defined(STALE_CLAIM)
#define may_claim(token) (word[slot_of(token)] % 8 == DRAINING)
#else
#define may_claim(token) is(token, DRAINING)
#endif

inline free(token) {
  d_step {
    word[slot_of(token)] = next_free(token);                /* end.free */
    note_free(token)
  }
}

#ifdef OWNERS
#include "family.pml"
#else
#define quiet(slot) (leases[slot] == 0)

inline release(token) {
  run_destroy(token);
  free(token)
}

inline finish(token) {
  release(token)
}
#endif

inline run_destroy(token) {
  d_step {                                                  /* end.destroy */
    assert(inside[slot_of(token)] == 0);
    assert(!is_destroyed(token));
#ifdef OWNERS
    assert(!survives(SLOTS / 2, token) && !survives(SLOTS - 1, token));
#endif
    destroyed[slot_of(token)] =
      destroyed[slot_of(token)] | bit(generation_of(token))
  }
}

/* Many may try, one wins. */
inline claim(token) {
#ifdef CLAIM_WITHOUT_SWAP
  if
  :: may_claim(token) ->
     won = true;
     word[slot_of(token)] = in_state(token, DESTROYING);
     note_claim(token)
  :: else
  fi
#else
  if
  :: atomic {
       may_claim(token) ->                                  /* try.claim */
       word[slot_of(token)] = in_state(token_in(slot_of(token)), DESTROYING);
       note_claim(token);
       won = true
     }
  :: else
  fi
#endif
}

/* Leases are read after the scan: a lease is added under a pin, so that of
 * a thread which the scan no longer saw is counted by then. */
inline claim_if_unused(token) {
#ifdef LEASES_BEFORE_SCAN
  was_quiet = quiet(slot_of(token));
  scan(token);
#else
  scan(token);                                              /* try.scan */
  was_quiet = quiet(slot_of(token));                        /* try.leases */
#endif
  if
  :: i == END && was_quiet -> i = 0; was_quiet = false; claim(token)
  :: else -> i = 0; was_quiet = false
  fi
}

inline try_to_destroy(token) {
  claim_if_unused(token);
  if
  :: won -> won = false; finish(token)
  :: else
  fi
}

#ifdef CONSUMED_FLAG
bool awaited[SLOTS];
#endif

/* Whoever gives up a pin, a lease or a child of a dead token may have been
 * the last. While it is only dying, its ender has yet to scan for good. */
inline try_if_draining(token) {
  if
#ifdef CONSUMED_FLAG
  :: atomic { awaited[slot_of(token)] -> awaited[slot_of(token)] = false }
     try_to_destroy(token)
#else
  :: may_claim(token) -> try_to_destroy(token)
#endif
  :: else
  fi
}

/* --- Calling ---------------------------------------------------------- */

#ifdef DEPTH
/* The topmost cell in use. Calls may be left in any order, and the depth
 * must not sink below a cell that is still in use. */
#define topmost ((held & 4) -> 2 : ((held & 2) -> 1 : 0))
#endif

inline enter(me, place, token) {
#if !defined(DEPTH)
  store(me, place, token);                                  /* enter.pin */
#elif defined(PIN_BEFORE_DEPTH)
  held = held | bit(place);
  store(me, place, token);
  store(me, 0, topmost);
#else
  held = held | bit(place);
  store(me, 0, topmost);                                    /* enter.depth */
  store(me, place, token);                                  /* enter.pin */
#endif
#if defined(FALLBACK) && !defined(NO_FENCE_IN_ENTER)
  full_fence(me);                                           /* enter.fence */
#endif
  d_step {
#ifdef NO_RECHECK
    in = true;
#else
    in = is(token, LIVE);                                   /* enter.check */
#endif
    if
    :: in -> inside[slot_of(token)]++; assert(!is_destroyed(token))
    :: else
    fi
  }
  if
  :: in
  :: else ->
     clear(me, place);
#ifndef REFUSAL_WITHOUT_CHECK
     check_after_clear(me, token)
#endif
  fi
}

inline clear(me, place) {
#if !defined(DEPTH)
  store(me, place, 0)                                       /* leave.clear */
#elif defined(DEPTH_BEFORE_CLEAR)
  held = held & ~bit(place);
  store(me, 0, topmost);
  store(me, place, 0)
#elif defined(DEPTH_BY_ONE)
  store(me, place, 0);
  store(me, 0, topmost - 1);
  held = held & ~bit(place)
#elif defined(CELL_NOT_CLEARED)
  held = held & ~bit(place);
  store(me, 0, topmost)
#else
  held = held & ~bit(place);
  store(me, place, 0);                                      /* leave.clear */
  store(me, 0, topmost)                                     /* leave.depth */
#endif
}

inline check_after_clear(me, token) {
#if defined(FALLBACK) && !defined(NO_FENCE_IN_LEAVE)
  full_fence(me);                                           /* leave.fence */
#endif
  if
  :: is(token, LIVE)                                        /* leave.check */
#ifdef STALE_IS_FAST
  :: token_in(slot_of(token)) != token
#endif
  :: else ->
#ifndef NO_FENCE_IN_SLOW_LEAVE
     full_fence(me);                                        /* leave.slow */
#endif
#ifndef LEAVE_WITHOUT_WAKE
     changed();                                             /* leave.wake */
#endif
     try_if_draining(token)                                 /* leave.again */
  fi
}

inline leave(me, place, token) {
  atomic { in = false; inside[slot_of(token)]--; clear(me, place) }
#ifndef LEAVE_WITHOUT_CHECK
  check_after_clear(me, token)
#endif
}

/* --- Ending ----------------------------------------------------------- */

/* The swap is a locked instruction: a thread with pins of its own comes to
 * it with an empty buffer, which is what `ready` says. */
inline mark(token, ready) {
#ifdef MARK_WITHOUT_SWAP
  if
  :: is(token, LIVE) ->
     atomic {
       word[slot_of(token)] = in_state(token, DYING);
       mine[slot_of(token)] = token
     }
  :: else
  fi
#else
  if
  :: atomic {
       ready && is(token, LIVE) ->                          /* end.mark */
       mine[slot_of(token)] = token;
       word[slot_of(token)] = in_state(token, DYING)
     }
  :: ready && !is(token, LIVE)
  fi
#endif
}

/* An ending that nobody waits for may stop after the mark; a later one takes
 * over what is parked, before its own fence. Both under a lock. */
inline park() {
  d_step {
    slot = 0;
    do
    :: slot < SLOTS && mine[slot] != 0 ->
       limbo = limbo | bit(slot);                           /* end.park */
       mine[slot] = 0;
       slot++
    :: slot < SLOTS && mine[slot] == 0 -> slot++
    :: slot == SLOTS -> break
    od;
    slot = 0
  }
}

inline take_limbo() {
  d_step {
    slot = 0;
    do
    :: slot < SLOTS && (limbo & bit(slot)) ->
       mine[slot] = token_in(slot);                         /* end.take */
       slot++
    :: slot < SLOTS && !(limbo & bit(slot)) -> slot++
    :: slot == SLOTS -> break
    od;
#ifndef LIMBO_SHARED
    limbo = 0;
#endif
    slot = 0
  }
}

/* A token that is not in the snapshot is not pinned and never will be.
 * Whether it is leased is read after the snapshot. */
#if defined(NO_LEASES) || defined(LEASES_BEFORE_SNAPSHOT)
#define clean(slot) (!container(slot) && !(seen & bit(slot)))
#else
#define clean(slot) (!container(slot) && !(seen & bit(slot)) && quiet(slot))
#endif

inline drain(slot) {
#ifdef DRAIN_WITHOUT_FENCE
  scan(mine[slot]);
  seen = (i == END -> seen & ~bit(slot) : seen | bit(slot));
  i = 0;
#endif
  d_step {
    word[slot] = in_state(mine[slot], DRAINING);            /* end.drain */
#ifdef CONSUMED_FLAG
    awaited[slot] = true
#endif
  }
}

/* Claims a slot, or drains it. Who was in the snapshot may have left before
 * the slot was draining, and has then done nothing: hence the second look. */
inline claim_or_drain(slot) {
  if
  :: clean(slot) ->                                         /* end.leases */
     d_step {
       word[slot] = in_state(mine[slot], DESTROYING);       /* end.claim */
       note_claim(mine[slot]);
       won = true
     }
  :: else ->
     drain(slot);
#if !defined(NO_RESCAN) && !defined(DRAIN_WITHOUT_FENCE)
     claim_if_unused(mine[slot])
#else
     if
     :: !(seen & bit(slot)) && quiet(slot) -> claim(mine[slot])
     :: else
     fi
#endif
  fi
}

/* Settles all that this thread has marked or taken over, with one fence and
 * one look.
 *
 * The first pass leaves no slot dying, and only the second runs user code:
 * nobody could tell whom a dying slot waits for. What a thread has claimed
 * counts as what it is inside. */
inline settle() {
#if defined(LIMBO) && !defined(LIMBO_TAKEN_LATE)
  take_limbo();
#endif
#if defined(NO_FENCE) || defined(FENCE_BEFORE_MARK)
  snapshot();
#elif defined(SNAPSHOT_BEFORE_FENCE)
  snapshot();
  heavy_fence();
#else
#ifdef DEPTH_BEFORE_FENCE
  limit = cell[0];
#endif
  heavy_fence();                                            /* end.fence */
#ifdef LEASES_BEFORE_SNAPSHOT
  seen = (leases[0] != 0);
#endif
  snapshot();                                               /* end.scan */
#endif
#ifdef LIMBO_TAKEN_LATE
  take_limbo();
#endif
  slot = 0;
  do
  :: slot < SLOTS && mine[slot] != 0 ->
     claim_or_drain(slot);
     if
#ifdef ONE_BY_ONE
     :: won -> won = false; finish(mine[slot]); mine[slot] = 0
#else
     :: won -> won = false
#endif
     :: else -> mine[slot] = 0
     fi;
     slot++
  :: slot < SLOTS && mine[slot] == 0 -> slot++
  :: slot == SLOTS -> break
  od;
#ifndef DRAIN_WITHOUT_WAKE
  changed();                                                /* drain.wake */
#endif
  slot = 0;
  do
  :: slot < SLOTS && mine[slot] != 0 ->
     finish(mine[slot]);
     mine[slot] = 0;
     slot++
  :: slot < SLOTS && mine[slot] == 0 -> slot++
  :: slot == SLOTS -> break
  od;
  slot = 0;
  seen = 0
}
