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
export LC_ALL=C

CC=${CC:-cc} CXX=${CXX:-c++}
warnings="-Wall -Wextra"
if ! flags=$(pkg-config --cflags --libs callbackregistry); then
  echo "run.sh: no library; run make first" >&2
  exit 1
fi
skipped=()
peers=()

# ------------------------------------------------------------- Building --

# build PROGRAM COMMAND...: runs the command unless the program is up to date.
echo "$CC $CXX $flags" > "$out/flags.new"
cmp -s "$out/flags.new" "$out/flags" || mv "$out/flags.new" "$out/flags"
build() {
  local program=$out/$1
  shift
  if [ -e "$program" ] && [ -z "$(find . ../include "$out/flags" -type f \
    -newer "$program" -print -quit)" ]; then return; fi
  "$@" -o "$program"
}

# peer PROGRAM TITLE COMMAND...: builds a peer, or says why not.
peer() {
  local name=$1 title=$2
  shift 2
  if build "$name" "$@" 2> "$out/$name.log"; then
    peers+=("$name")
  else
    skipped+=("$title does not build: build/bench/$name.log")
  fi
}

# without TITLE PACKAGE: says that a peer is skipped.
without() { skipped+=("$1 skipped: $2 is not installed"); }

has() { pkg-config --exists "$1"; }
harness=("$out/harness.o")
beside=("$out/harness.o" "$out/main.o")

build_ours() {
  build harness.o $CC -O2 -g $warnings -c harness.c
  build main.o $CC -O2 -g $warnings -c Peers/main.c $flags
  local name
  for name in calls lifetimes memory growth; do
    build $name $CC -O2 -g $warnings $name.c "${harness[@]}" $flags
  done
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
  local moc
  moc=$(pkg-config --variable=host_bins Qt5Core 2> /dev/null || true)/moc
  if has Qt5Core && [ -x "$moc" ]; then
    mkdir -p "$out/moc"
    "$moc" Peers/qt.cpp -o "$out/moc/qt.moc"
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
  for package in gobject-2.0 sigc++-2.0 Qt5Core; do
    if has $package; then
      fact $package "$(pkg-config --modversion $package)"
    fi
  done
  local line
  for line in "${skipped[@]}"; do printf 'note\tpeer calls\t%s.\n' "$line"; done
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

run_all() {
  describe
  run calls
  CBR_FORCE_FALLBACK=1 run calls "calls fallback" "threads fallback"
  run lifetimes
  run memory
  run_growth
  local name
  for name in "${peers[@]}"; do run "$name"; done
}

echo "building" >&2
build_ours
build_peers
run_all > "$out/lines.txt"
awk -f report.awk "$out/lines.txt" | tee "$out/report.md"
