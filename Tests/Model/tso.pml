/* SPDX-License-Identifier: Apache-2.0 */

/* Pin cells behind store buffers (x86-TSO), and how an ender looks at them.
 *
 * A plain store goes into the FIFO buffer of its thread and reaches memory
 * some time later; every other thread reads memory. A full fence, and every
 * locked instruction, waits until the own buffer is empty. Only pin cells
 * and depths are written with plain stores here. Every other store counts as
 * visible at once; the README lists where the engine owes a full fence for
 * that.
 *
 * A thread looks at its own cells only after a full fence, so forwarding
 * from its own buffer need not be modelled. */

#ifndef PINNERS
#define PINNERS 2               /* threads that own pin cells */
#endif
#ifndef CELLS
#define CELLS 1                 /* pin cells of a thread */
#endif
#ifndef PENDING
#define PENDING 4               /* stores that a buffer can hold back */
#endif

#if PINNERS > 3
#error "heavy_fence knows three threads"
#endif

/* Where a thread publishes its depth, its cells begin at 1 and the depth is
 * stored at 0. */
#ifdef DEPTH
#define FIRST 1
#else
#define FIRST 0
#endif
#define PLACES (FIRST + CELLS)

byte cell[PINNERS * PLACES];
chan buffer[PINNERS] = [PENDING] of { byte, byte };

inline store(me, place, value) {
  buffer[me] ! place, value
}

#define full_fence(me) (len(buffer[me]) == 0)

/* Takes the oldest store out of one thread's buffer, whenever it likes. */
proctype Memory(byte me) {
  byte place, value;
end:
  do
  :: atomic {
       buffer[me] ? place, value ->
       cell[me * PLACES + place] = value;
       place = 0;
       value = 0
     }
  od
}

/* membarrier: each thread passes a full fence some time before the call
 * returns, in no particular order. In the fallback the readers have their
 * own fences and the ender's buffer holds nothing. */
inline heavy_fence() {
#ifndef FALLBACK
  do
  :: fenced == (1 << PINNERS) - 1 -> break
  :: !(fenced & 1) && full_fence(0) -> fenced = fenced | 1
#if PINNERS > 1
  :: !(fenced & 2) && full_fence(1) -> fenced = fenced | 2
#endif
#if PINNERS > 2
  :: !(fenced & 4) && full_fence(2) -> fenced = fenced | 4
#endif
  od;
  fenced = 0
#else
  skip
#endif
}

/* Looks at one place a step. A cell counts only below the depth that was
 * read before it. */
#ifdef DEPTH
#define is_depth(place) ((place) % PLACES == 0)
#define counts(place) (!is_depth(place) && (place) % PLACES <= limit)
#else
#define is_depth(place) false
#define counts(place) true
#endif
#define END (PINNERS * PLACES)

#ifdef PIN_WITHOUT_GENERATION
#define holds(place, token) \
  (cell[place] != 0 && slot_of(cell[place]) == slot_of(token))
#else
#define holds(place, token) (cell[place] == token)
#endif

/* Leaves i < END if some cell holds the token. */
inline scan(token) {
  i = 0;
  do
  :: d_step {
       i < END && !(counts(i) && holds(i, token)) ->
       if
       :: is_depth(i) -> limit = cell[i]
       :: else
       fi;
       i++
     }
  :: else -> break
  od
}

/* Collects in `seen` the slots, among those now dying, whose token some cell
 * holds: one look for a whole group. */
inline snapshot() {
  i = 0;
  do
  :: d_step {
       i < END ->
       if
#ifdef DEPTH_BEFORE_FENCE
       :: is_depth(i)
#else
       :: is_depth(i) -> limit = cell[i]
#endif
       :: else ->
          if
          :: counts(i) && cell[i] != 0 &&
             word[slot_of(cell[i])] == in_state(cell[i], DYING) ->
             seen = seen | bit(slot_of(cell[i]))
          :: else
          fi
       fi;
       i++
     }
  :: else -> break
  od;
  i = 0
}
