#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Checks the models with spin. What should hold is searched to the end, and
# every mutant must be caught; see README.md.
#
#   check.sh          the default set: about a minute and a half
#   check.sh --full   larger bounds too: some five minutes
#   check.sh --show MODEL SWITCH...   one way in which a mutant goes wrong
#
# A line of the table is an expectation, a model and its switches:
#   holds    no assertion fails and nobody is left waiting
#   ends     no run goes on for ever
#   breaks   a mutant that the search for the first must catch

set -u
models=$(cd "$(dirname "$0")" && pwd)

default_table() {
  cat <<'TABLE'
holds  protocol ENDERS=2
holds  protocol FALLBACK ENDERS=2
holds  protocol LIMBO ENDERS=2 ROUNDS=1
holds  protocol GENERATIONS=2 ENDERS=2 ROUNDS=1
holds  protocol GENERATIONS=2 ENDERS=3 READERS=1
holds  protocol READERS=1 LEASERS=1
holds  protocol READERS=1 LEASERS=1 FALLBACK
holds  protocol READERS=1 LEASERS=1 ENDERS=2
holds  protocol INSIDE
holds  protocol SLOTS=2 ROUNDS=1
holds  protocol SLOTS=2 ROUNDS=1 READERS=1 LIMBO ENDERS=2
holds  protocol READERS=0 ONE_SHOTS=2
holds  protocol READERS=0 ONE_SHOTS=2 FALLBACK
holds  protocol READERS=0 ONE_SHOTS=2 LIMBO
holds  protocol READERS=0 ONE_SHOTS=3 ENDERS=0
holds  depth
holds  depth FALLBACK
holds  owners
holds  owners FALLBACK
holds  owners LIMBO
holds  owners ENDERS=2 CHILD_ENDERS=0
holds  owners READERS=1 CHILD_ENDERS=0
holds  owners READERS=1 REGISTRARS=0
holds  owners NESTED ENDERS=2
holds  waiting CROWD
holds  waiting RING=3
holds  waiting RING=2
holds  waiting RING=2 FALLBACK
holds  waiting LOOSE_RING
holds  waiting SAME
holds  waiting OWN
holds  waiting OWN FALLBACK
holds  waiting LEASED
holds  waiting PARKED
holds  waiting DESTROY_RING
holds  waiting DESTROY_OWN
holds  waiting GROUP
holds  waiting GROUP_RING
holds  waiting GROUP_FAMILY
holds  waiting FAMILY_RING
holds  waiting FAMILY_OWN
holds  waiting FAMILY_ENDED
holds  waiting FAMILY_CLAIMED
holds  waiting OWN_ENDED
ends   waiting RING=2
ends   waiting SAME
ends   waiting OWN
ends   waiting LEASED
ends   waiting PARKED
ends   waiting DESTROY_OWN
ends   waiting GROUP_RING
ends   waiting FAMILY_OWN

holds  protocol STALE_IS_FAST GENERATIONS=2 ENDERS=2 ROUNDS=1
holds  waiting STALE_IS_FAST CROWD
holds  waiting STALE_IS_FAST OWN
holds  protocol ONE_BY_ONE SLOTS=2 ROUNDS=1
holds  depth PIN_BEFORE_DEPTH
holds  depth DEPTH_BEFORE_CLEAR

breaks protocol NO_RECHECK
breaks protocol NO_FENCE
breaks protocol FENCE_BEFORE_MARK
breaks protocol SNAPSHOT_BEFORE_FENCE
breaks protocol LEAVER_DESTROYS_DYING
breaks protocol CONSUMED_FLAG
breaks protocol REFUSAL_WITHOUT_CHECK
breaks protocol LEAVE_WITHOUT_CHECK
breaks protocol NO_FENCE_IN_SLOW_LEAVE
breaks protocol LEASES_BEFORE_SCAN READERS=1 LEASERS=1
breaks protocol CLAIM_WITHOUT_SWAP
breaks protocol MARK_WITHOUT_SWAP ENDERS=2
breaks protocol NO_FENCE_IN_ENTER FALLBACK
breaks protocol NO_FENCE_IN_LEAVE FALLBACK
breaks protocol NO_RESCAN
breaks protocol DRAIN_WITHOUT_FENCE
breaks protocol NO_LEASES READERS=1 LEASERS=1
breaks protocol LEASES_BEFORE_SNAPSHOT READERS=1 LEASERS=1
breaks protocol LEASE_AFTER_LEAVE READERS=1 LEASERS=1
breaks protocol DROP_WITHOUT_CHECK READERS=1 LEASERS=1
breaks protocol MARK_WITHOUT_SWAP READERS=0 ONE_SHOTS=2
breaks protocol ONE_SHOT_NOT_SETTLED READERS=0 ONE_SHOTS=2
breaks protocol STALE_CLAIM GENERATIONS=2 ENDERS=2 ROUNDS=1
breaks protocol SAME_GENERATION GENERATIONS=2 ENDERS=2 ROUNDS=1
breaks protocol PIN_WITHOUT_GENERATION GENERATIONS=2 ENDERS=2 ROUNDS=1
breaks protocol LIMBO_TAKEN_LATE SLOTS=2 ROUNDS=1 READERS=1 LIMBO ENDERS=2
breaks protocol LIMBO_SHARED SLOTS=2 ROUNDS=1 READERS=1 LIMBO ENDERS=2
breaks depth NO_FENCE
breaks depth DEPTH_BY_ONE
breaks depth CELL_NOT_CLEARED
breaks depth DEPTH_BEFORE_FENCE
breaks owners REGISTER_WITHOUT_RECHECK
breaks owners PUBLISHED_UNPINNED
breaks owners WALK_WITHOUT_LOCK
breaks owners MARK_OUTSIDE_LOCK ENDERS=2 CHILD_ENDERS=0
breaks owners MARK_OUTSIDE_LOCK NESTED ENDERS=2
breaks owners UNLINK_BEFORE_DESTROY
breaks owners FREE_BEFORE_UNLINK
breaks owners OWNER_NOT_CHECKED
breaks owners CHILDREN_IGNORED
breaks owners PARK_WITHOUT_LOOK LIMBO
breaks owners NO_FENCE
breaks waiting CHECKS_ONCE CROWD
breaks waiting LEAVE_WITHOUT_WAKE OWN
breaks waiting DESTROY_WITHOUT_WAKE CROWD
breaks waiting DRAIN_WITHOUT_WAKE FAMILY_ENDED
breaks waiting PARK_WITHOUT_LOOK PARKED
breaks waiting FREE_WITHOUT_FENCE GROUP_FAMILY
breaks waiting WAKE_WITHOUT_LOCK OWN
breaks waiting REGISTERS_LATE OWN
breaks waiting SEARCH_UNREGISTERED RING=2
breaks waiting OWN_PINS_COUNTED OWN
breaks waiting GIVER_UP_STAYS CROSS
breaks waiting LIMBO_NOT_TAKEN PARKED
breaks waiting CLAIMS_NOT_COUNTED GROUP
breaks waiting CLAIMS_NOT_COUNTED GROUP_RING
breaks waiting CLAIMED_IS_LEFT FAMILY_CLAIMED
breaks waiting LOOKS_UNFENCED OWN_ENDED
breaks waiting DESTROYER_WITHOUT_PIN DESTROY_RING
breaks waiting DESTROYER_WITHOUT_PIN DESTROY_OWN
breaks waiting ONE_BY_ONE GROUP
breaks waiting ONE_BY_ONE GROUP_RING
breaks waiting CHILDREN_NOT_FOLLOWED FAMILY_RING
TABLE
}

full_table() {
  cat <<'TABLE'
holds  protocol READERS=3 ROUNDS=1
holds  protocol READERS=3 ROUNDS=1 ENDERS=2
holds  protocol ROUNDS=3 ENDERS=2 PENDING=6
holds  protocol GENERATIONS=2 ENDERS=2
holds  protocol SLOTS=2 ROUNDS=1 ENDERS=2
holds  protocol SLOTS=2 ROUNDS=1 ENDERS=2 LIMBO
holds  protocol SLOTS=2
holds  protocol READERS=2 LEASERS=1 ROUNDS=1
holds  protocol READERS=0 ONE_SHOTS=3 ENDERS=2
holds  protocol INSIDE ENDERS=2
holds  depth CALLS=5 PENDING=20
holds  owners ENDERS=2
holds  owners READERS=1
holds  owners READERS=1 REGISTRARS=0 ENDERS=2 LIMBO
holds  waiting CHAIN
holds  waiting CROSS
holds  waiting RING=3 FALLBACK
ends   waiting RING=3
ends   waiting CHAIN
ends   waiting CROWD
TABLE
}

# Writes the search program of one configuration into the current directory.
build() { # options-of-the-compiler model switches...
  local options=$1 model=$2
  shift 2
  spin "${@/#/-D}" -a "$models/$model.pml" > spin.out 2>&1 &&
    cc $options -w -DCOLLAPSE -DNOFAIR -DVECTORSZ=512 -DMEMLIM=15000 \
      -o pan pan.c > cc.out 2>&1
}

# Searches one configuration and prints a line; a failure leaves a mark.
check() { # expectation model switches...
  local expectation=$1 model=$2 directory options search caught finding states
  shift 2
  directory=$(mktemp -d "$work/XXXXXX") && cd "$directory" || exit 1
  case $expectation in
    holds)  options="$optimise -DSAFETY" search= ;;
    ends)   options="$optimise -DNP" search=-l ;;
    breaks) options='-O0 -DSAFETY' search= ;;
  esac
  : > out
  build "$options" "$model" "$@" && ./pan $search $bounds > out 2>&1
  finding=$(sed -n 's/^pan:1: \([a-z -]*[a-z]\).*/\1/p' out)
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
  caught=no
  case $expectation/$finding in
    breaks/'assertion violated'*|breaks/'invalid end state'*) caught=yes ;;
  esac
  grep -q 'invalid array index' out && caught=no
  case $expectation in
    holds|ends)
      if grep -q 'errors: 0$' out && [ -z "$finding" ] &&
        ! grep -Eqi 'not completed|too small|truncated|out of memory|error:' \
          out
      then result=ok; else result=FAILED; fi ;;
    *)
      if grep -q 'errors: [1-9]' out && [ $caught = yes ]
      then result=ok; else result=FAILED; fi ;;
  esac
  printf '%-6s %-6s %-8s %9s  %s%s\n' "$result" "$expectation" "$model" \
    "${states:-none}" "$*" "${finding:+: $finding}"
  echo "$result" > verdict
  rm -f pan* out
}

# Prints one way in which a configuration goes wrong, step by step.
show() { # model switches...
  local model=$1
  shift
  cd "$work" || exit 1
  build '-O1 -DSAFETY -DREACH' "$model" "$@" || cat spin.out cc.out
  ./pan -i -m2000 > out 2>&1 || cat out
  if [ -f "$model.pml.trail" ]; then
    spin "${@/#/-D}" -p -k "$model.pml.trail" "$models/$model.pml"
  else
    echo "no error found"
  fi
}

command -v spin > /dev/null || {
  echo "spin is needed to check the models (package: spin)" >&2
  exit 1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export models work
export -f build check

run() { # table optimisation bounds-of-the-search
  $1 | grep . | optimise=$2 bounds=$3 \
    xargs -P "$(nproc)" -I LINE bash -c 'check LINE'
}

# Most small searches take less time than optimising their programs would.
case ${1-} in
  '') tables=default_table ;;
  --full) tables='default_table full_table' ;;
  --show) shift; show "$@"; exit ;;
  *) sed -n 's/^#   check/check/p' "$0" >&2; exit 2 ;;
esac
run default_table -O0 '-m20000 -w22'
[ "${1-}" != --full ] || run full_table -O1 '-m20000 -w26'
passed=$(grep -lx ok "$work"/*/verdict | wc -l)
total=$(for table in $tables; do $table; done | grep -c .)
echo "$passed passed, $((total - passed)) failed"
[ "$passed" = "$total" ]
