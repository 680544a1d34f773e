#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Three downloads from a server on this machine, by one session whose delegates
# are told in a loop of epoll; then the history tells of them. Fails when
# anything is not as it says.

set -euo pipefail
cd "$(dirname "$0")/../.."

here=Examples/downloader
out=build/downloader
history=$out/downloads.history
name=downloader
. Examples/steps.sh

need cc python3

rm -rf "$out"
mkdir -p "$out/www"
seq 1 60000 > "$out/www/file"
size=$(stat -c %s "$out/www/file")

serve "$out/www" "$out/server.log"

read -r -a libraries < <(pkg-config --cflags --libs libcurl callbackregistry)
cc -std=c11 -g -Wall -Wextra -pedantic -fsanitize=address \
  "$here/downloader.c" -o "$out/downloader" -pthread "${libraries[@]}"

title "Three downloads of $size bytes"
"$out/downloader" "$history" "http://127.0.0.1:$port/file" "$out/saved" |
  sed 's/^/   /' || fail "the program has failed"
cmp "$out/www/file" "$out/saved" || fail "what was saved is another file"

ask() {
  title "$1"
  printf '   sqlite3 %s "%s"\n' "$history" "$2"
  sqlite3 -box "$history" "$2" | sed 's/^/   /'
}
value() { sqlite3 "$history" "$1"; }
expect() {
  [ "$(value "$2")" = "$1" ] || fail "$2: $(value "$2") instead of $1"
}

ask "What was told, and in which order?" \
  "SELECT time, thread, event, label, detail FROM history
   WHERE event IN ('registered', 'ended', 'session ending', 'task completed')
   AND label IN ('downloads', 'patient', 'curious', 'saved')"
ask "How did the session end?" \
  "SELECT label, delegate_label, ended_reason, tasks, cancelled FROM sessions"
ask "What was not delivered?" \
  "SELECT label, event, times FROM undelivered"
ask "Does everything add up?" \
  "SELECT label, attempts, called, refused, difference FROM conservation"

expect ended "SELECT ended_reason FROM sessions"
expect 1 "SELECT cancelled FROM sessions"
expect 3 "SELECT count(*) FROM history WHERE event = 'task completed'"
expect 1 "SELECT count(*) FROM history WHERE event = 'task completed'
  AND label = 'curious' AND detail LIKE 'cancelled%'"
expect 0 "SELECT count(*) FROM unanswered"
expect 0 "SELECT count(*) FROM conservation WHERE difference <> 0"
expect 0 "SELECT count(*) FROM violations"
expect 0 "SELECT count(*) FROM leaks"

title "All as it should be: one came late, one had enough, one was saved"
