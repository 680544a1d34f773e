/* SPDX-License-Identifier: Apache-2.0 */

/* An owner and what belongs to it. Slot 0 is the owner, slot 1 its child
 * from the beginning; slot 2 is free, and a registrar registers a child in
 * it, or in slot 1 once that is free again.
 *
 * Marks below an owner are made under the registry lock, as is registering:
 * so a walk finds all that is live below, or somebody else has marked it.
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

#ifdef NESTED
#define container(slot) ((slot) < 2)
#else
#define container(slot) ((slot) == 0)
#endif

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

/* A registrar pins what it registers until that is recorded, which counts as
 * being inside. The pin becomes visible before the word does. */
inline publish(me, place, generation) {
#ifndef PUBLISHED_UNPINNED
  store(me, FIRST, token_of(place, generation));            /* register.pin */
#endif
  atomic {
    full_fence(me) ->
    parent[place] = host;
    born_under[place] = host;
    children[slot_of(host)]++;
    inside[place]++;
    word[place] = token_of(place, generation);              /* register.link */
    target = token_of(place, generation)
  }
}

proctype Registrar(byte me) {
  locals;
#ifdef REGISTER_WITHOUT_RECHECK
  in = is(host, LIVE);
  lock_registry();
  if
  :: in -> in = false;
#else
  lock_registry();
  if
  :: is(host, LIVE) ->                                      /* register.check */
#endif
     if
     :: word[2] == in_state(token_of(2, 1), FREE) -> publish(me, 2, 1)
#ifndef NESTED
     :: word[1] == next_free(child) -> publish(me, 1, 2)
#endif
     fi
  :: else
  fi;
  unlock_registry();
  if
  :: target != 0 ->
#ifdef PUBLISHED_UNPINNED
     inside[slot_of(target)]--;
#else
     owner = target;
     target = 0;
     leave(me, FIRST, owner);
     owner = 0
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

/* Marks the children that are linked, and theirs if they are owners that this
 * walk has marked: another ender's walk has been below the others. */
#define walked(slot, token) \
  (parent[slot] == token || \
   (parent[slot] != 0 && mine[slot_of(parent[slot])] != 0))

inline walk(token) {                                        /* end.walk */
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
#ifdef MARK_OUTSIDE_LOCK
  mark(token, true);
#endif
#ifndef WALK_WITHOUT_LOCK
  lock_registry();
#endif
#ifndef MARK_OUTSIDE_LOCK
  mark(token, true);                                        /* end.mark */
#endif
  if
  :: mine[slot_of(token)] != 0 -> walk(token)
  :: else
  fi;
#ifndef WALK_WITHOUT_LOCK
  unlock_registry();
#endif
  if
  :: mine[slot_of(token)] != 0 -> settle()
  :: else
  fi;
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
