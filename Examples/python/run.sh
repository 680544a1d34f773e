#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the example in Python with the library in build/lib.

set -euo pipefail
cd "$(dirname "$0")"
exec python3 callbacks.py ../../build/lib/libcallbackregistry.so.0
