/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose callbacks these programs set, and which dies too early. It is a library
 * of its own, so that its death can be heard of by LD_PRELOAD, too.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

/* Says that the subject is dead: what is the callbacks' user data, or the
 * library's object. */
void subject_died(void *what);

/* To be called by each callback: counts it, and says the how many-th it is. */
int subject_called(void);

/* Prints "calls N, late N". Returns 0. */
int subject_tell(void);

#endif
