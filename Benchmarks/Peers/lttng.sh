#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program in a session of LTTng that records its events:
#
#   lttng.sh FOLDER PROGRAM
#
# FOLDER is for what is recorded, and is removed. A session daemon is started
# and ended, unless there is one.
set -euo pipefail
folder=$1 program=$2
session=cbr-bench-$$
log=$folder.log
daemon=

clean() {
  lttng --no-sessiond destroy "$session" >> "$log" 2>&1 || true
  if [ -n "$daemon" ]; then
    kill "$daemon" 2> /dev/null && wait "$daemon" || true
  fi
  rm -rf "$folder"
}

skip() {
  printf 'note\tpeer events\tLTTng-UST skipped: %s (%s).\n' "$1" "$log"
  exit 0
}

answers() { lttng --no-sessiond list > /dev/null 2>&1; }

start_daemon() {
  answers && return
  lttng-sessiond --no-kernel >> "$log" 2>&1 &
  daemon=$!
  for _ in $(seq 50); do
    answers && return
    sleep 0.1
  done
  skip "its session daemon does not run"
}

start_session() {
  lttng --no-sessiond create "$session" --output="$folder" &&
    lttng --no-sessiond enable-channel --userspace --session="$session" \
      --subbuf-size=4M --num-subbuf=4 events &&
    lttng --no-sessiond enable-event --userspace --session="$session" \
      --channel=events 'cbr_bench:*' &&
    lttng --no-sessiond start "$session"
}

: > "$log"
trap clean EXIT
start_daemon
start_session >> "$log" 2>&1 || skip "no session can be made"
"$program"
lttng --no-sessiond stop "$session" >> "$log" 2>&1
lost=$(lttng --no-sessiond list "$session" |
  sed -n 's/.*[Dd]iscarded events: *\([0-9]*\).*/\1/p' | head -n 1)
printf 'note\tpeer events\tLTTng-UST discarded %s events.\n' "${lost:-?}"
