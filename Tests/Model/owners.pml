/* SPDX-License-Identifier: Apache-2.0 */

/* An owner and what belongs to it. Slot 0 is the owner, slot 1 its child
 * from the beginning; slot 2 is free, and a registrar registers a child in
 * it, or in slot 1 once that is free again.
 *
 * NESTED: slot 1 is an owner too, and slot 2 is registered under it.
 * ENDERS: threads that end the owner; with NESTED the second ends slot 1.
 * CHILD_ENDERS, READERS: threads that end, or call, the child in slot 1.
 * LIMBO: who ends that child may stop after the mark. */

#define OWNERS
#define SLOTS 3

#ifndef READERS
#define READERS 0
#endif
#ifndef ENDERS
#define ENDERS 1
#endif
#if defined(NESTED)
#define CHILD_ENDERS 0
#elif !defined(CHILD_ENDERS)
#define CHILD_ENDERS 1
#endif
#ifndef REGISTRARS
#define REGISTRARS 1
#endif
#define PINNERS (READERS + REGISTRARS)
#define THREADS (PINNERS + ENDERS + CHILD_ENDERS)
#define PENDING 2

#include "steps.pml"

#define root token_of(0, 1)
#define child token_of(1, 1)
#ifdef NESTED
#define host child
#else
#define host root
#endif

/* Whether a slot is linked below an owner, at any depth. */
#define below(slot, token) \
  (parent[slot] == token || \
   (parent[slot] != 0 && parent[slot_of(parent[slot])] == token))

/* register.enter pins the owner, so that its slot stays its own while the
 * child is made. It may have begun to die meanwhile: the second look is made
 * under the lock under which its ender walks. */
inline link(place, generation) {
  parent[place] = host;
  born_under[place] = host;
  children[slot_of(host)]++;
  word[place] = token_of(place, generation)                 /* register.link */
}

proctype Registrar(byte me) {
  locals;
#ifndef REGISTER_WITHOUT_PIN
  enter(me, FIRST, host);                                   /* register.enter */
#else
  in = true;
#endif
  if
  :: in ->
     lock_registry();
#ifdef REGISTER_WITHOUT_RECHECK
     if
     :: true ->
#else
     if
     :: is(host, LIVE) ->                                   /* register.check */
#endif
        if
        :: d_step { word[2] == in_state(token_of(2, 1), FREE) -> link(2, 1) }
#ifndef NESTED
        :: d_step { word[1] == next_free(child) -> link(1, 2) }
#endif
        fi
     :: else
     fi;
     unlock_registry();
#ifndef REGISTER_WITHOUT_PIN
     leave(me, FIRST, host)
#endif
  :: else
  fi;
  finished++
}

proctype Reader(byte me) {
  locals;
  enter(me, FIRST, child);
  if
  :: in -> leave(me, FIRST, child)
  :: else
  fi;
  finished++
}

#ifdef PRUNED_WALK
#define walked(slot, token) \
  (parent[slot] == token || \
   (parent[slot] != 0 && mine[slot_of(parent[slot])] != 0))
#else
#define walked(slot, token) below(slot, token)
#endif

/* Marks the children that are linked; registration is closed by the mark on
 * the owner. Goes into owners below that somebody else has marked: that one
 * may not have come to its own walk yet. */
inline walk(token) {
  target = slot_of(token) + 1;
  do
  :: target < SLOTS && walked(target, token) ->
     mark(token_in(target), true);
     target++
  :: target < SLOTS && !walked(target, token) -> target++
  :: target == SLOTS -> break
  od;
  target = 0
}

proctype Ender(byte token) {
  locals;
#if !defined(WALK_BEFORE_MARK) && !defined(MARK_UNDER_LOCK)
  mark(token, true);                           /* end.mark */
#endif
#ifndef WALK_WITHOUT_LOCK
  lock_registry();
#endif
#ifdef MARK_UNDER_LOCK
  mark(token, true);
#endif
#ifdef ALREADY_WITHOUT_WALK
  if
  :: mine[slot_of(token)] != 0 -> walk(token)
  :: else
  fi;
#else
  walk(token);                                              /* end.walk */
#endif
#ifndef WALK_WITHOUT_LOCK
  unlock_registry();
#endif
#ifdef WALK_BEFORE_MARK
  mark(token, true);
#endif
  settle();
  /* The ending has returned: nothing below is live. */
  d_step {
    do
    :: slot < SLOTS ->
       assert(!(below(slot, token) && is(token_in(slot), LIVE)));
       slot++
    :: else -> break
    od;
    slot = 0
  }
  finished++
}

/* One that stops after the mark must look at the owner after it has parked
 * the child: an ending of the owner may have come for it too early. */
proctype ChildEnder() {
  locals;
  mark(child, true);
#ifdef LIMBO
  park();
#ifdef PARK_WITHOUT_LOOK
  goto done;
#endif
  if
  :: is(root, LIVE) -> goto done                            /* park.owner */
  :: else
  fi;
#endif
  settle();
done:
  finished++
}

init {
  byte n;
  atomic {
    word[0] = root;
    word[1] = child;
    word[2] = in_state(token_of(2, 1), FREE);
    parent[1] = root;
    born_under[1] = root;
    children[0] = 1;
    do
    :: n < PINNERS ->
       run Memory(n);
       if
       :: n < REGISTRARS -> run Registrar(n)
       :: else -> run Reader(n)
       fi;
       n++
    :: else -> break
    od;
    n = 0;
    run Ender(root);
#if ENDERS > 1
#ifdef NESTED
    run Ender(child);
#else
    run Ender(root);
#endif
#endif
    do
    :: n < CHILD_ENDERS -> run ChildEnder(); n++
    :: else -> break
    od;
    n = 0
  }
  finished == THREADS;
  do
  :: n < SLOTS ->
     assert(word[n] == in_state(token_in(n), FREE));
     assert(destroyed[n] == (1 << (word[n] / 8 % 4)) - 2);
     n++
  :: else -> break
  od
}
