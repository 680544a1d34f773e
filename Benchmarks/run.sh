#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs every benchmark against the library in build/lib, or the one
# that PKG_CONFIG_PATH names, and prints the tables of build/bench/report.md.
#
#   run.sh           15 rounds of 20 ms per case
#   run.sh --quick   a first impression: 5 rounds of 4 ms
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd .. && pwd)
out=$root/build/bench
mkdir -p "$out"

case ${1-} in
  '') mode=normal rounds=15 round_ms=20 ;;
  --quick) mode=quick rounds=5 round_ms=4 ;;
  *) echo "usage: run.sh [--quick]" >&2; exit 2 ;;
esac
export BENCH_ROUNDS=${BENCH_ROUNDS:-$rounds}
export BENCH_ROUND_MS=${BENCH_ROUND_MS:-$round_ms}
PKG_CONFIG_PATH=${PKG_CONFIG_PATH:+$PKG_CONFIG_PATH:}
export PKG_CONFIG_PATH+=$root/build/lib/pkgconfig
export BENCH_MODE=$mode BENCH_FOLDER=$out
export BENCH_CBR=$root/build/bin/cbr
export BENCH_VERIFY_SQL=$root/packaging/verify.sql
export LC_ALL=C

CC=${CC:-cc} CXX=${CXX:-c++}
warnings="-Wall -Wextra"
if ! flags=$(pkg-config --cflags --libs callbackregistry); then
  echo "run.sh: no library; run make first" >&2
  exit 1
fi
skipped=()
peers=()
recorders=()
loops=()
transfers=()
modules=()
# What a run that was interrupted has left.
rm -rf "$out"/cbr-bench.*

# ------------------------------------------------------------- Building --

# build PROGRAM COMMAND...: runs the command unless the program is up to date.
echo "$CC $CXX $flags" > "$out/flags.new"
cmp -s "$out/flags.new" "$out/flags" || mv "$out/flags.new" "$out/flags"
engine=$root/Sources
build() {
  local program=$out/$1
  shift
  if [ -e "$program" ] && [ -z "$(find . ../include "$engine" "$out/flags" \
    -type f -newer "$program" -print -quit)" ]; then return; fi
  "$@" -o "$program"
}

# peer PROGRAM TITLE COMMAND...: builds a peer, or says why not.
peer() { add_peer peers "$@"; }

# recorder PROGRAM TITLE COMMAND...: the same, for a peer that records events.
recorder() { add_peer recorders "$@"; }

add_peer() {
  local -n list=$1
  local name=$2 title=$3
  shift 3
  if build "$name" "$@" 2> "$out/$name.log"; then
    list+=("$name")
  else
    skipped+=("$group"$'\t'"$title does not build: build/bench/$name.log")
  fi
}

# without TITLE PACKAGE: says that a peer is skipped.
without() { skipped+=("$group"$'\t'"$1 skipped: $2 is not installed"); }

has() { pkg-config --exists "$1"; }

# Qt's compiler of what a class says about itself.
moc() { "$(pkg-config --variable=host_bins Qt5Core 2> /dev/null || true)/moc" "$@"; }
has_qt() { has Qt5Core && moc --version > /dev/null 2>&1; }

# run_moc NAME: for Peers/NAME.cpp.
run_moc() {
  mkdir -p "$out/moc"
  moc "Peers/$1.cpp" -o "$out/moc/$1.moc"
}
harness=("$out/harness.o")
beside=("$out/harness.o" "$out/main.o")
events=("$out"/{harness,spread,feed,events}.o)

# The step of recording, from the sources of the engine, as they are compiled
# for the library.
build_step() {
  mkdir -p "$out/step"
  printf 'module CPlatform { header "%s/CPlatform/include/CPlatform.h" }\n' \
    "$engine" > "$out/step/module.modulemap"
  swiftc -O -wmo -parse-as-library -swift-version 6 \
    -module-name Step -package-name step -num-threads 0 \
    -enable-experimental-feature Embedded -I "$out/step" -c Record.swift \
    "$engine"/CallbackRegistry/{Platform,Recording}/*.swift \
    -o "$out/step/swift.o" &&
    (cd "$out/step" && $CC -O2 -fPIC -I"$engine/CPlatform/include" \
      -c "$engine"/CPlatform/*.c) &&
    ld -r "$out"/step/*.o "$@"
}

build_record() {
  local step=()
  # Without it, or a Swift toolchain, record says that it is skipped.
  if build step.o build_step 2> "$out/step.log"; then
    step=("$out/step.o")
  fi
  build record $CC -O2 -g $warnings record.c "$out"/{harness,spread,feed}.o \
    "${step[@]}" $flags -lffi
}

build_history() {
  local name
  for name in spread feed writer bare; do
    build $name.o $CC -O2 -g $warnings -c $name.c $flags
  done
  build events.o $CC -O2 -g $warnings -c Peers/events.c $flags
  build_record
  build ingest $CC -O2 -g $warnings ingest.c \
    "$out"/{harness,feed,writer,bare}.o $flags -lsqlite3
  build recovery $CC -O2 -g $warnings recovery.c "$out"/{harness,feed}.o \
    $flags -lsqlite3
  build verify $CC -O2 -g $warnings verify.c "$out"/{harness,feed}.o $flags
  build retention $CC -O2 -g $warnings retention.c \
    "$out"/{harness,feed,writer}.o $flags -lsqlite3
}

build_ours() {
  build harness.o $CC -O2 -g $warnings -c harness.c
  build main.o $CC -O2 -g $warnings -c Peers/main.c $flags
  local name
  for name in calls lifetimes memory growth session thunks; do
    build $name $CC -O2 -g $warnings $name.c "${harness[@]}" $flags
  done
  build queue.o $CC -O2 -g $warnings -c queue.c $flags
  build queue $CC "$out/queue.o" "${harness[@]}" $flags -lpthread
}

# A transfer with libcurl's guard linked in.
build_guarded() {
  "$BENCH_CBR" guard ../Guards/libcurl.guard -o "$out/guard.c" &&
    $CC -O2 -g -DCURL_DISABLE_TYPECHECK $warnings guarded.c \
      "${harness[@]}" -x c -fexceptions -DCBR_GUARD_WRAP "$out/guard.c" \
      -x none $("$BENCH_CBR" guard --wrap ../Guards/libcurl.guard) \
      $(pkg-config --cflags --libs libcurl) $flags -lpthread "$@"
}

build_curl() {
  local group="guarded"
  if has libcurl; then add_peer transfers guarded "libcurl's guard" build_guarded
  else without libcurl libcurl4-openssl-dev; fi
}

cxx() {
  local name=$1 title=$2
  shift 2
  peer "$name" "$title" $CXX -O2 -g $warnings "Peers/$name.cpp" \
    "${beside[@]}" "$@" $flags
}

build_slotmap() {
  local source=$1
  rustc --edition 2018 -O --crate-name slotmap --crate-type rlib \
    --cfg has_min_const_generics --cfg 'feature="std"' --cap-lints allow \
    "$source/src/lib.rs" -o "$out/libslotmap.rlib" &&
    rustc --edition 2021 -O --crate-name slotmap_peer --crate-type staticlib \
      --extern slotmap="$out/libslotmap.rlib" Peers/slotmap.rs \
      -o "$out/libslotmap_peer.a" &&
    $CC "${beside[@]}" "$out/libslotmap_peer.a" $flags -lm -ldl -lpthread \
      "${@:2}"
}

build_swift() {
  local linked=() flag
  for flag in $flags; do linked+=(-Xclang-linker "$flag"); done
  swiftc -O -parse-as-library -module-name WeakPeer -c Peers/weak.swift \
    -o "$out/weak.o" &&
    swiftc "${beside[@]}" "$out/weak.o" "${linked[@]}" "$@"
}

build_peers() {
  local group="peer calls"
  cxx weak_ptr "std::weak_ptr"
  cxx hash_map "mutex + hash map"
  if has gobject-2.0; then
    peer gobject GLib $CC -O2 -g $warnings Peers/gobject.c "${beside[@]}" \
      $(pkg-config --cflags --libs gobject-2.0) $flags
  else without GLib libglib2.0-dev; fi
  if echo '#include <boost/signals2.hpp>' |
    $CXX -x c++ -fsyntax-only - 2> /dev/null; then
    cxx signals2 "boost::signals2"
  else without "boost::signals2" libboost-dev; fi
  if has sigc++-2.0; then
    cxx sigc "sigc++" $(pkg-config --cflags --libs sigc++-2.0)
  else without "sigc++" libsigc++-2.0-dev; fi
  if has_qt; then
    run_moc qt
    cxx qt Qt -fPIC -I"$out/moc" $(pkg-config --cflags --libs Qt5Core)
  else without Qt qtbase5-dev; fi
  local slotmap
  slotmap=$(ls -d ${SLOTMAP:-/usr/share/cargo/registry/slotmap-1*} \
    2> /dev/null | tail -n 1 || true)
  if ! command -v rustc > /dev/null; then without "Rust slotmap" rustc
  elif [ -z "$slotmap" ]; then without "Rust slotmap" librust-slotmap-dev
  else peer slotmap "Rust slotmap" build_slotmap "$slotmap"; fi
  if command -v swiftc > /dev/null; then
    peer swift_weak "Swift" build_swift
  else without Swift "a Swift toolchain"; fi
}

# loop PROGRAM TITLE SOURCE WORD...: a loop of others, beside our queue.
loop() {
  local name=$1 title=$2 source=$3
  shift 3
  local compiler=$CC
  case $source in *.cpp) compiler=$CXX ;; esac
  add_peer loops "$name" "$title" $compiler -O2 -g $warnings "$out/queue.o" \
    "$source" "${harness[@]}" "$@" $flags -lpthread
}

build_loops() {
  local group="queue" name package title
  for name in glib_loop:glib-2.0:GLib uv_loop:libuv:libuv; do
    IFS=: read -r name package title <<< "$name"
    if has $package; then
      loop $name $title "Peers/$name.c" $(pkg-config --cflags --libs $package)
    else without $title $package; fi
  done
  if has_qt; then
    run_moc qt_loop
    loop qt_loop Qt Peers/qt_loop.cpp -fPIC -I"$out/moc" \
      $(pkg-config --cflags --libs Qt5Core)
  else without Qt qtbase5-dev; fi
}

# The Swift module, which a Swift program has instead of the library.
build_swift_module() {
  swift build --configuration release --package-path Swift \
    --scratch-path "$out/swift" >&2 &&
    swiftc "$out/harness.o" "$out/swift/release/libSwiftCalls.a" \
      -lsqlite3 -lffi "$@"
}

build_module() {
  local group="swift calls"
  if command -v swiftc > /dev/null; then
    add_peer modules swift_calls "the Swift module" build_swift_module
  else without "the Swift module" "a Swift toolchain"; fi
}

build_recorders() {
  local group="peer events"
  if has spdlog; then
    recorder spdlog spdlog $CXX -O2 -g $warnings Peers/spdlog.cpp \
      "${events[@]}" $(pkg-config --cflags --libs spdlog) $flags
  else without spdlog libspdlog-dev; fi
  if ! has lttng-ust; then without LTTng-UST liblttng-ust-dev
  elif ! command -v lttng-sessiond > /dev/null; then
    without LTTng-UST lttng-tools
  else
    recorder lttng LTTng-UST $CC -O2 -g $warnings -IPeers Peers/lttng.c \
      "${events[@]}" $(pkg-config --cflags --libs lttng-ust) $flags
  fi
}

# -------------------------------------------------------------- Running --

fact() { printf 'fact\t%s\t%s\n' "$1" "$2"; }
first_line() { "$@" 2> /dev/null | head -n 1 || true; }

describe() {
  fact Mode "$mode: $BENCH_ROUNDS rounds of $BENCH_ROUND_MS ms per case"
  fact Processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
    head -n 1), $(nproc) cores"
  fact System "$(uname -srm), $(. /etc/os-release && echo "$PRETTY_NAME")"
  fact Load "$(cut -d ' ' -f 1 /proc/loadavg) at the start"
  fact Library "CallbackRegistry $(pkg-config --modversion callbackregistry)"
  fact C "$(first_line $CC --version)"
  fact C++ "$(first_line $CXX --version)"
  fact Swift "$(first_line swiftc --version)"
  fact Rust "$(first_line rustc --version)"
  local package
  for package in gobject-2.0 sigc++-2.0 Qt5Core spdlog lttng-ust; do
    if has $package; then
      fact $package "$(pkg-config --modversion $package)"
    fi
  done
  local line
  for line in "${skipped[@]}"; do printf 'note\t%s.\n' "$line"; done
}

# run PROGRAM ARGUMENT...: a failure is a remark in the report.
run() {
  local name=$1
  echo "running $*" >&2
  "$out/$name" "${@:2}" || {
    printf 'note\tfailures\t%s failed with status %s.\n' "$*" $?
  }
}

run_growth() {
  local live available
  available=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
  for live in 10 1000 100000 1000000 10000000; do
    if [ $((live / 1000000 * 400)) -gt "$available" ]; then
      printf 'note\tgrowth\t%s live tokens skipped: too little memory.\n' $live
    else
      run growth $live
    fi
  done
}

run_recorder() {
  if [ "$1" = lttng ]; then
    echo "running lttng" >&2
    Peers/lttng.sh "$out/lttng-trace" "$out/lttng" ||
      printf 'note\tfailures\tlttng failed with status %s.\n' $?
  else run "$1"; fi
}

run_all() {
  describe
  run calls
  CBR_FORCE_FALLBACK=1 run calls "calls fallback" "threads fallback"
  run lifetimes
  run memory
  run_growth
  if [ ${#loops[@]} = 0 ]; then run queue; fi
  run session
  run thunks
  local name
  for name in "${transfers[@]}" "${modules[@]}"; do run "$name"; done
  for name in "${loops[@]}"; do run "$name"; done
  for name in record ingest recovery retention verify; do run $name; done
  for name in "${peers[@]}"; do run "$name"; done
  for name in "${recorders[@]}"; do run_recorder "$name"; done
}

echo "building" >&2
build_ours
build_history
build_peers
build_loops
build_curl
build_module
build_recorders
run_all > "$out/lines.txt"
awk -f report.awk "$out/lines.txt" | tee "$out/report.md"
