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
late=$(sqlite3 "$out/plugins.history" "SELECT count(DISTINCT caller)
  FROM late_callers WHERE ended_reason = 'owner died'")
[ "$late" = 4 ] || fail "the history has $late late callers instead of 4"
