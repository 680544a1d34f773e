# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of the larger examples share. They name the example first:
#
#   name=demo; . Examples/steps.sh

export PKG_CONFIG_PATH="$PWD/build/lib/pkgconfig"
export ASAN_OPTIONS=exitcode=99:detect_leaks=0

title() { printf '\n== %s\n' "$*"; }
fail() { printf '%s: %s\n' "$name" "$*" >&2; exit 1; }

# need TOOL...: fails where a tool, libcurl or the library is missing.
need() {
  local tool
  for tool in pkg-config sqlite3 "$@"; do
    command -v "$tool" > /dev/null || fail "$tool is missing"
  done
  pkg-config --exists libcurl || fail "the headers of libcurl are missing"
  pkg-config --exists callbackregistry || fail "run 'make lib' first"
}

# serve FOLDER LOG: a server on a free port of the loopback interface, which is
# gone with the script; sets port.
serve() {
  local line
  exec {server}< <(exec python3 -u -m http.server --bind 127.0.0.1 \
    --directory "$1" 0 2> "$2")
  server_process=$!
  trap 'kill "$server_process" 2> /dev/null || :' EXIT
  read -r -t 10 line <&"$server" || fail "the HTTP server does not start"
  port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' <<< "$line")
}
