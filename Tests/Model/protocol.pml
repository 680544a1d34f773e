/* SPDX-License-Identifier: Apache-2.0 */

/* Calls, leases, one-shots and endings of one slot or a group of two.
 *
 * READERS, LEASERS, ONE_SHOTS, ENDERS: threads of each kind; at most one
 *   leaser.
 * ROUNDS: how often a reader tries to enter.
 * SLOTS: with 2, the first ender ends both, others the second alone.
 * GENERATIONS: with 2, a new holder registers in the slot; the first ender
 *   ends the old one, the second the new one, readers try either.
 * INSIDE: a reader may end the token from inside its own call.
 * LIMBO: an ending may stop after the mark. */

#ifndef READERS
#define READERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef LEASERS
#define LEASERS 0
#endif
#ifndef ONE_SHOTS
#define ONE_SHOTS 0
#endif
#ifndef ENDERS
#define ENDERS 1
#endif
#ifndef GENERATIONS
#define GENERATIONS 1
#endif

#define PINNERS (READERS + LEASERS + ONE_SHOTS)
#define THREADS (PINNERS + LEASERS + ENDERS + GENERATIONS - 1)

#include "steps.pml"

/* Whatever was or will be given out may be tried at any time. */
inline choose(token) {
  if
  :: token = token_of(0, 1)
#if SLOTS > 1
  :: token = token_of(1, 1)
#endif
#if GENERATIONS > 1
  :: token = token_of(0, 2)
#endif
  fi
}

#define has_work (mine[0] != 0 || mine[SLOTS - 1] != 0 || limbo != 0)

inline settle_or_park() {
  if
#ifdef LIMBO
  :: has_work -> park()
#endif
  :: has_work -> settle()
  :: !has_work
  fi
}

proctype Reader(byte me) {
  byte round, token;
  locals;
  do
  :: round < ROUNDS ->
     round++;
     choose(token);
     enter(me, FIRST, token);
     if
     :: in ->
#ifdef INSIDE
        if
        :: mark(token, full_fence(me)); settle_or_park()
        :: true
        fi;
#endif
        leave(me, FIRST, token)
     :: else
     fi;
     token = 0
  :: else -> break
  od;
  finished++
}

#if ONE_SHOTS > 0
byte consumed;                  /* calls that a one-shot has answered */

/* Entering marks. The thread that did so settles: after its leave, or while
 * it is inside, and then its leave is like any other. */
proctype OneShot(byte me) {
  locals;
  store(me, FIRST, token_of(0, 1));                         /* enter.pin */
  mark(token_of(0, 1), full_fence(me));                     /* enter.consume */
  if
  :: mine[0] != 0 ->
     d_step {
       inside[0]++;
       consumed++;
       assert(consumed == 1 && !is_destroyed(token_of(0, 1)))
     }
     if
     :: settle(); leave(me, FIRST, token_of(0, 1))
     :: inside[0]--;
        clear(me, FIRST);
#ifdef FALLBACK
        full_fence(me);
#endif
#ifndef ONE_SHOT_NOT_SETTLED
        settle_or_park()
#endif
     fi
  :: else ->
     clear(me, FIRST);
     check_after_clear(me, token_of(0, 1))
  fi;
  finished++
}
#endif

#if LEASERS > 0
mtype = { not_yet, leased, refused };
mtype lease = not_yet;

proctype Leaser(byte me) {
  locals;
  enter(me, FIRST, token_of(0, 1));
  if
  :: in ->
#ifdef LEASE_AFTER_LEAVE
     leave(me, FIRST, token_of(0, 1));
     atomic {
       assert(!is_destroyed(token_of(0, 1)));
       leases[0]++;
       inside[0]++;
       lease = leased
     }
#else
     atomic {
       full_fence(me) ->
       leases[0]++;                                         /* lease.add */
       inside[0]++;
       lease = leased
     }
     leave(me, FIRST, token_of(0, 1))
#endif
  :: else -> lease = refused
  fi;
  finished++
}

/* A lease may end on another thread, before its maker has left. */
proctype LeaseEnder() {
  locals;
  if
  :: atomic {
       lease == leased ->
       inside[0]--;
       leases[0]--;                                         /* lease.drop */
       lease = not_yet
     }
#ifndef DROP_WITHOUT_CHECK
     try_if_draining(token_of(0, 1))                        /* lease.again */
#endif
  :: lease == refused
  fi;
  finished++
}
#endif

proctype Ender(byte number) {
  locals;
#ifdef FENCE_BEFORE_MARK
  heavy_fence();
#endif
  if
#if GENERATIONS > 1
  :: number == 1 ->
     word[0] >= token_of(0, 2);
     mark(token_of(0, 2), true)
#elif SLOTS > 1
  :: number == 0 ->
     mark(token_of(0, 1), true);
     mark(token_of(1, 1), true)
  :: number == 1 -> mark(token_of(1, 1), true)
#endif
  :: else -> mark(token_of(0, 1), true)
  fi;
  settle_or_park();
  finished++
}

#if GENERATIONS > 1
proctype Registrar() {
#ifdef SAME_GENERATION
  word[0] == next_free(token_of(0, 1)) -> word[0] = token_of(0, 1);
#else
  word[0] == next_free(token_of(0, 1)) -> word[0] = token_of(0, 2);
#endif
  finished++
}
#endif

init {
  byte n;
  locals;
  atomic {
    do
    :: n < SLOTS -> word[n] = token_of(n, 1); n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < PINNERS ->
       run Memory(n);
       if
       :: n < READERS -> run Reader(n)
#if LEASERS > 0
       :: n >= READERS && n < READERS + LEASERS ->
          run Leaser(n);
          run LeaseEnder()
#endif
#if ONE_SHOTS > 0
       :: n >= READERS + LEASERS -> run OneShot(n)
#endif
       fi;
       n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < ENDERS -> run Ender(n); n++
    :: else -> break
    od;
#if GENERATIONS > 1
    run Registrar();
#endif
    n = 0
  }
  finished == THREADS;
#ifdef LIMBO
  settle();
#endif
  /* Everybody has left: what was ended must have been destroyed. */
  do
  :: n < SLOTS ->
     if
     :: ENDERS == 0 && is(token_of(n, 1), LIVE)
     :: else -> assert(word[n] == next_free(token_of(n, GENERATIONS)) &&
                       destroyed[n] == (2 << GENERATIONS) - 2)
     fi;
     n++
  :: else -> break
  od
}
