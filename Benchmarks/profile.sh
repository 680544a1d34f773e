#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of a guarded call, with valgrind's callgrind.
set -euo pipefail
cd "$(dirname "$0")"
out=$(cd .. && pwd)/build/bench
mkdir -p "$out"
export PKG_CONFIG_PATH=$out/../lib/pkgconfig
${CC:-cc} -O2 -g -Wall -Wextra profile.c -o "$out/profile" \
  $(pkg-config --cflags --libs callbackregistry)
printf '%-10s %-12s %12s\n' level function instructions
for level in off lifecycle calls; do
  valgrind -q --tool=callgrind --callgrind-out-file="$out/profile.$level" \
    "$out/profile" $level
  callgrind_annotate --inclusive=yes "$out/profile.$level" |
    awk -v level=$level 'match($0, /\?\?\?:cbr_(enter|leave|is_live) /) {
      name = substr($0, RSTART + 4, RLENGTH - 5); gsub(",", "", $1)
      if (!seen[name]++) printf "%-10s %-12s %12.1f\n", level, name, $1 / 2e4
    }'
done
