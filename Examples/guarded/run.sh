#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds an old C++ program twice from the same sources, as it was and with a
# guard of libcurl linked in, and closes its window too early. Fails when
# anything is not as it says.

set -euo pipefail
cd "$(dirname "$0")/../.."

here=Examples/guarded
out=build/guarded
history=$out/viewer.history
name=guarded
. Examples/steps.sh

need cc c++
[ -x build/bin/cbr ] || fail "run 'make' first"

rm -rf "$out"
mkdir -p "$out"
seq 1 60000 > "$out/file"
read -r -a libraries < <(pkg-config --cflags --libs libcurl callbackregistry)
options=(-g -O1 -Wall -Wextra -Werror -fsanitize=address "-I$here")
for source in viewer window; do
  c++ -std=c++17 "${options[@]}" -c "$here/$source.cpp" -o "$out/$source.o"
done

title "The program as it is"
c++ -fsanitize=address "$out"/{viewer,window}.o -o "$out/viewer" \
  "${libraries[@]}"
code=0
"$out/viewer" "file://$PWD/$out/file" > "$out/report.txt" 2>&1 || code=$?
grep -E '^a window|ERROR' "$out/report.txt" | sed 's/^/   /'
[ "$code" -eq 99 ] || fail "the sanitizer found nothing (exit $code)"
grep -q 'heap-use-after-free' "$out/report.txt" ||
  fail "this is another error than a use after free"

title "The same objects, linked with a guard"
cat Guards/libcurl.guard "$here/window.guard" > "$out/viewer.guard"
build/bin/cbr guard "$out/viewer.guard" -o "$out/guard.c"
cc -std=gnu11 "${options[@]}" -fexceptions -DCBR_GUARD_WRAP -c "$out/guard.c" \
  -o "$out/guard.o" "${libraries[@]}"
read -r -a wraps < <(build/bin/cbr guard --wrap "$out/viewer.guard")
c++ -fsanitize=address "$out"/{viewer,window,guard}.o -o "$out/guarded" \
  "${wraps[@]}" "${libraries[@]}"
CBR_GUARD_HISTORY=$history "$out/guarded" "file://$PWD/$out/file" \
  > "$out/report.txt" 2>&1 || { cat "$out/report.txt"; fail "it failed"; }
sed 's/^/   /' "$out/report.txt"
grep -q '^libcurl: Failed writing' "$out/report.txt" ||
  fail "libcurl was not told that nobody takes its bytes"

title "Who called too late?"
sqlite3 -box "$history" "SELECT label, caller, attempts,
  late_by_ns / 1000 AS late_by_us, status FROM late_callers" |
  sed 's/^/   /'
late=$(sqlite3 "$history" "SELECT count(*) FROM late_callers
  WHERE label = 'curl_easy_setopt write' AND status = 'CBR_E_STALE'")
[ "$late" = 1 ] || fail "the history has $late late callers instead of one"
