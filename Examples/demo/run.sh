#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Downloads a real file twice, with and without guarded callbacks, while
# another thread destroys what the callbacks belong to; then asks the history
# what happened. Fails when anything is not as it says.

set -euo pipefail
cd "$(dirname "$0")/../.."

here=Examples/demo
out=build/demo
history=$out/download.history
name=demo
. Examples/steps.sh

need cc python3

rm -rf "$out"
mkdir -p "$out/www"

# Real input: the largest file of 2 to 32 MB among the system's libraries and
# programs (the C compiler that compiles this demo is one).
file=$({ find /usr/lib /usr/libexec /usr/bin -type f -readable \
  -size +2048k -size -32768k -printf '%s %p\n' 2> /dev/null || :; } |
  LC_ALL=C grep -E '^[0-9]+ [A-Za-z0-9/._-]+$' | sort -rn |
  sed -n '1s/^[0-9]* //p') || :
[ -n "$file" ] || fail "no file of some megabytes found"
size=$(stat -c %s "$file")
ln -s "$file" "$out/www/file"

serve "$out/www" "$out/server.log"
urls=("file://$file" "http://127.0.0.1:$port/file")

title "The file: $file, $size bytes"
printf '   %s\n' "${urls[@]}"

title "The two programs differ in this"
diff "$here/download_unguarded.c" "$here/download_guarded.c" | sed 's/^/   /' ||
  :
read -r -a libraries < <(pkg-config --cflags --libs libcurl callbackregistry)
for program in download_unguarded download_guarded; do
  cc -std=c11 -g -Wall -Wextra -pedantic -fsanitize=address \
    "$here/$program.c" -o "$out/$program" -pthread "${libraries[@]}"
done

for url in "${urls[@]}"; do
  title "Unguarded, from ${url%%:*}:"
  code=0
  timeout 25 "$out/download_unguarded" "$url" > "$out/report.txt" 2>&1 ||
    code=$?
  grep -E '^==.*ERROR|^(READ|WRITE)|^freed by|in (window_|on_|user )' \
    "$out/report.txt" | sed "s|$PWD/||; s/^/   /" || :
  [ "$code" -eq 99 ] || fail "the sanitizer found nothing (exit $code)"
  grep -q 'ERROR: AddressSanitizer: heap-use-after-free' "$out/report.txt" ||
    fail "this is another error than a use after free"
  grep -A 3 '^freed by thread T1' "$out/report.txt" |
    grep ' in user ' > /dev/null || fail "someone else freed the window"
done

attempts=0
for url in "${urls[@]}"; do
  title "Guarded, from ${url%%:*}:"
  timeout 25 "$out/download_guarded" "$url" "$history" \
    > "$out/report.txt" 2>&1 || {
    cat "$out/report.txt"
    fail "the guarded download failed"
  }
  sed 's/^/   /' "$out/report.txt"
  made=$(sed -n "s/^libcurl: No error, $size bytes, \([0-9]*\) calls$/\1/p" \
    "$out/report.txt")
  [ -n "$made" ] || fail "the download is not complete"
  attempts=$((attempts + made))
done

# Prints the answer of the history to a question.
ask() {
  title "$1"
  printf '   sqlite3 %s "%s"\n' "$history" "$2"
  sqlite3 -box "$history" "$2" | sed 's/^/   /'
}

# Compares the answer of the history with what it must be.
expect() {
  local answer
  answer=$(sqlite3 "$history" "$2")
  [ "$answer" = "$1" ] || fail "expected $1 from \"$2\", not \"$answer\""
}

ask "Who died, when, and who did it?" \
  "SELECT run, kind, label, ended_time, ended_reason, ended_by, calls
   FROM token_life WHERE kind <> 'registry' ORDER BY registration"
expect 4 "SELECT count(*) FROM token_life
  WHERE kind = 'token' AND state = 'settled' AND ended_reason = 'owner died'"

ask "Which calls came too late?" \
  "SELECT run, owner_label AS owner, label, caller, attempts,
     late_by_ns / 1000 AS late_by_us, status FROM late_callers"
expect 4 "SELECT count(*) FROM late_callers
  WHERE status = 'CBR_E_STALE' AND attempts > 0"

ask "What happened around the first death?" \
  "SELECT substr(time, 12) AS time, thread, event, label, detail
   FROM history WHERE run = 1 AND sequence BETWEEN
     (SELECT min(sequence) FROM history WHERE event = 'ended') - 3 AND
     (SELECT min(sequence) FROM history WHERE event = 'refused') + 2"

ask "Is every attempt to call accounted for?" \
  "SELECT run, label, attempts, called, refused, lost, difference
   FROM conservation"
expect "$attempts|0|0" "SELECT attempts, lost, difference FROM conservation
  WHERE token = 'total'"

ask "Did anything happen that must not?" "SELECT count(*) FROM violations"
expect 0 "SELECT count(*) FROM violations"

title "All as it should be: $attempts calls of libcurl, each accounted for"
