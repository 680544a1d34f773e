/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the C files of this module only. */
#ifndef CPLATFORM_INTERNAL_H
#define CPLATFORM_INTERNAL_H

#include "CPlatform.h"

CBR_PRIVATE bool cbr_threads_prepare(void (*thread_exit)(void *));
CBR_PRIVATE void cbr_fences_prepare(void);
CBR_PRIVATE void cbr_clock_prepare(void);
CBR_PRIVATE void cbr_checks_prepare(void);

/* The first line of a small file; empty if it cannot be read. */
CBR_PRIVATE void cbr_read_line(const char *path, char *text, size_t size);

/* Around a fork; see forking.c. */
CBR_PRIVATE void cbr_before_fork(void);
CBR_PRIVATE void cbr_after_fork_in_parent(void);
CBR_PRIVATE void cbr_after_fork_in_child(void);

/* The same of the descriptors that programs poll; see wakeups.c. */
CBR_PRIVATE void cbr_wakeups_before_fork(void);
CBR_PRIVATE void cbr_wakeups_after_fork_in_parent(void);
CBR_PRIVATE void cbr_wakeups_after_fork_in_child(void);

/* Whether the test at hand wants the next allocation to fail. */
CBR_PRIVATE bool cbr_allocation_fails(void);

#ifdef CBR_TEST_HOOKS
extern int cbr_test_membarrier_error;
#endif

#endif
