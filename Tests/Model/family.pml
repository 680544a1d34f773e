/* SPDX-License-Identifier: Apache-2.0 */

/* Slots that belong to an owner, which is a slot too. A child is linked when
 * it is registered and unlinked when it has been destroyed, both under the
 * registry lock; its owner is destroyed after it.
 *
 * A model may define
 *   prepare(token)  what the user's destroy does
 *   conclude(token) what happens after the slot is free */

byte parent[SLOTS];             /* the owner's token; 0 if not linked */
byte children[SLOTS];           /* how many are linked; read without lock */
bool registry_locked;
byte born_under[SLOTS];         /* the owner's token, kept for assertions */

#ifdef CHILDREN_IGNORED
#define quiet(slot) (leases[slot] == 0)
#else
#define quiet(slot) (leases[slot] == 0 && children[slot] == 0)
#endif

/* A child that was registered under the token and is not destroyed yet. */
#define survives(child, token) \
  (born_under[child] == token && word[child] % 8 != FREE && \
   !is_destroyed(token_in(child)))

#ifndef prepare
#define prepare(token) skip
#endif
#ifndef conclude
#define conclude(token) skip
#endif

inline lock_registry() {
  atomic { !registry_locked -> registry_locked = true }
}

inline unlock_registry() {
  registry_locked = false
}

/* One step, since all that it changes is changed under the lock. */
inline unlink(token) {
  atomic {
    !registry_locked ->
    owner = parent[slot_of(token)];
    parent[slot_of(token)] = 0;
    if
    :: owner != 0 -> children[slot_of(owner)]--             /* end.unlink */
    :: else
    fi
  }
}

/* Leaves the owner's token in `owner`. */
inline release(token) {
  prepare(token);
#if defined(UNLINK_BEFORE_DESTROY)
  unlink(token);
  run_destroy(token);
  free(token);
#elif defined(FREE_BEFORE_UNLINK)
  run_destroy(token);
  free(token);
  unlink(token);
#else
  run_destroy(token);
  unlink(token);
  free(token);
#endif
  conclude(token)
}

/* Whoever frees a child may have freed the last one. */
inline finish(token) {
  target = token;
  do
  :: true ->
     release(target);
     target = owner;
     owner = 0;
     if
#ifndef OWNER_NOT_CHECKED
     :: target != 0 && may_claim(target) ->                 /* end.owner */
        claim_if_unused(target);
        if
        :: won -> won = false
        :: else -> break
        fi
#endif
     :: else -> break
     fi
  od;
  target = 0
}
