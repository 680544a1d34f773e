/* SPDX-License-Identifier: Apache-2.0
 *
 * callback_registry_guard.h - what the C files of "cbr guard" are made with.
 *
 * A guard stands between a program and a library that takes callbacks. It
 * replaces the library's setters, registers what the program sets, and gives
 * the library a function of its own, a trampoline, which enters the token,
 * calls the program's function and leaves. Once the object that was given the
 * callback is dead, or the callback was replaced, a late call gets a default
 * answer, and is recorded.
 *
 * Define these before including it, in one C file:
 *   CBR_GUARD_LIBRARY   the name for labels and messages, "libcurl"
 *   CBR_GUARD_SONAME    where functions are looked for that are not in the
 *                       program yet, "libcurl.so.4"
 *   CBR_GUARD_SLOTS     how many different callbacks an object can have
 *   CBR_GUARD_NAMES     their names, "write", "header"
 *   CBR_GUARD_WRAP      for an object file linked with -Wl,--wrap=...; without
 *                       it the file is for a library named by LD_PRELOAD
 *   CBR_GUARD_OWN       1 where the registry itself uses the library, and its
 *                       own calls must be left alone
 *
 * The environment:
 *   CBR_GUARD=off       nothing is guarded: every call goes straight through
 *   CBR_GUARD_HISTORY   the history's file; none: in memory
 *   CBR_GUARD_LEVEL     off, lifecycle or calls (the default)
 *   CBR_GUARD_END_AT    for tests: the object of the so many-th guarded call
 *                       is taken for dead from then on
 * What cannot be guarded goes through, too, and one line on stderr says why.
 *
 * Threads.  A trampoline runs on any thread. Two threads may set the same
 *   callback of one object at a time, if the library allows that: both stay
 *   live until it is set again or the object dies.
 * Locks.  One, for the table of objects; it is not held while the library,
 *   the registry or the program's functions are called.
 * fork.  In the child what was set before goes through unguarded, unless it is
 *   dead, and what is set there is guarded anew.
 * Since.  0.1.0. Documentation/Guarding.md has the descriptions that the
 *   generator reads.
 */
#ifndef CALLBACK_REGISTRY_GUARD_H
#define CALLBACK_REGISTRY_GUARD_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include: RTLD_NEXT is one of its"
#endif

#ifndef CBR_GUARD_OWN
#define CBR_GUARD_OWN 0
#endif

#include "callback_registry_guard/calls.h"
#include "callback_registry_guard/options.h"

#endif
