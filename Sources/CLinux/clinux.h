/* SPDX-License-Identifier: Apache-2.0
 *
 * What Swift's module Glibc leaves out. */
#include <stdint.h>
#include <sys/vfs.h>

/* Locks of open file descriptions: fcntl(2). */
static const int32_t CBR_OFD_GETLK = 36;
static const int32_t CBR_OFD_SETLK = 37;
