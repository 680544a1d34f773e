#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the examples in Swift, which are a package that depends on
# this one. Fails when anything is not as it says.

set -euo pipefail
cd "$(dirname "$0")/../.."

here=Examples/Swift
out=build/swift-examples
name=swift
. Examples/steps.sh

need cc swift
rm -rf "$out"
mkdir -p "$out"

title "A package that depends on this one"
# Where this one was built nothing of it is compiled again; but SwiftPM would
# go by the plan that it finds, whosever that is.
rm -f .build/debug.yaml
swift build --package-path "$here" --scratch-path .build > "$out/build.log" \
  2>&1 || { cat "$out/build.log"; fail "it does not build"; }
rm -f .build/debug.yaml
if grep -q 'warning:' "$out/build.log"; then
  cat "$out/build.log"
  fail "it does not build without warnings"
fi
cc -shared -fPIC -Wall -Wextra -Werror -Iinclude "$here/CPlugin/scale.c" \
  -o "$out/scale.so"

title "Plug-ins in C and Swift are unloaded while they are called"
.build/debug/PluginHost "$out/plugins.history" "$out/scale.so" \
  .build/debug/libHalvePlugin.so > "$out/host.txt" 2>&1 ||
  { cat "$out/host.txt"; fail "the host did not stay up"; }
sed 's/^/   /' "$out/host.txt"
[ "$(grep -c '^unloaded while it is called: true$' "$out/host.txt")" = 2 ] ||
  fail "a plug-in was not unloaded"
[ "$(grep -c '^  a caller was told: ' "$out/host.txt")" = 4 ] ||
  fail "not every caller was told"
refused=$(sqlite3 "$out/plugins.history" "SELECT count(DISTINCT thread)
  FROM refusals WHERE status = 'CBR_E_STALE' AND ended_reason = 'owner died'")
[ "$refused" = 4 ] || fail "the history has $refused late callers instead of 4"

title "A folder is watched by a loop, and by an object that dies"
mkdir "$out/folder"
exec {watcher}< <(exec stdbuf -oL .build/debug/FileWatcher \
  "$out/watcher.history" "$out/folder" 2>&1)
read -r -t 20 line <&"$watcher" && [ "$line" = watching ] ||
  fail "it does not watch: $line"
echo 1 > "$out/folder/first"
echo 2 > "$out/folder/second"
rm "$out/folder/second"
mv "$out/folder/first" "$out/folder/stop"
timeout 60 cat <&"$watcher" > "$out/watcher.txt" || fail "it does not stop"
sed 's/^/   /' "$out/watcher.txt"
printf '%s\n' "created first" "written first" "created second" \
  "written second" "removed second" "removed first" "created stop" \
  "dropped: 0" "the tally is dead: true" \
  "the loop has ended its connection: true" |
  diff - <(head -n 10 "$out/watcher.txt") ||
  fail "this is not what was done to the files"
grep -q '^tally: [1-7] calls, ended: object died$' "$out/watcher.txt" ||
  fail "the history does not tell of the tally"

title "A window is closed in the middle of its download"
mkdir "$out/served"
seq 1 1200000 > "$out/served/file"
serve "$out/served" "$out/server.log"
timeout 120 .build/debug/Downloader "$out/downloader.history" \
  "http://127.0.0.1:$port/file" > "$out/downloader.txt" 2>&1 ||
  { cat "$out/downloader.txt"; fail "the downloads failed"; }
sed 's/^/   /' "$out/downloader.txt"
printf '%s\n' "the window is closed after some bytes" "the window has died" \
  "the transfer is over" "the transfer is over" \
  "the window has $(stat -c %s "$out/served/file") bytes" \
  "the window has died" | diff - <(head -n 6 "$out/downloader.txt") ||
  fail "this is not what was to happen"
late=$(sqlite3 "$out/downloader.history" "SELECT sum(attempts)
  FROM late_callers WHERE label = 'download.delegate'
    AND status = 'CBR_E_STALE' AND ended_reason = 'object died'")
[ "${late:-0}" -gt 0 ] || fail "the history knows of no late caller"
