/* SPDX-License-Identifier: Apache-2.0 */

/* Nested calls. A thread publishes how many of its cells are in use, so that
 * an ender reads only those. Both travel through the same FIFO buffer:
 * enter raises the depth before it stores the pin, leave clears the pin
 * before it lowers the depth, an ender reads the depth before the cells. */

#define DEPTH
#define CELLS 2
#define PENDING 12
#define SLOTS 2
#ifndef PINNERS
#define PINNERS 1
#endif
#ifndef CALLS
#define CALLS 3
#endif

#include "steps.pml"

/* Enters and leaves at will, up to two calls deep, in any order; at most
 * CALLS entries in all. */
proctype Nester(byte me) {
  byte calls, place, token[3];
  locals;
  do
  :: calls < CALLS && topmost < CELLS ->
     calls++;
     place = topmost + 1;
     if
     :: token[place] = token_of(0, 1)
     :: token[place] = token_of(1, 1)
     fi;
     enter(me, place, token[place]);
     if
     :: in -> in = false
     :: else -> token[place] = 0
     fi;
     place = 0
  :: held & 2 -> leave(me, 1, token[1]); token[1] = 0
  :: held & 4 -> leave(me, 2, token[2]); token[2] = 0
  :: held == 0 -> break
  od;
  finished++
}

proctype Ender() {
  locals;
  if
  :: mark(token_of(0, 1), true)
  :: mark(token_of(0, 1), true); mark(token_of(1, 1), true)
  fi;
  settle();
  finished++
}

init {
  byte n;
  atomic {
    word[0] = token_of(0, 1);
    word[1] = token_of(1, 1);
    do
    :: n < PINNERS -> run Memory(n); run Nester(n); n++
    :: else -> break
    od;
    n = 0;
    run Ender()
  }
  finished == PINNERS + 1;
  assert(word[0] == next_free(token_of(0, 1)));
  assert(is(token_of(1, 1), LIVE) || word[1] == next_free(token_of(1, 1)))
}
