/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the Makefile sends what Swift tells the thread sanitizer besides the
 * memory that is written (swift_tsan). It is here, and not in the tests, so
 * that each product of the package can be linked.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
void cbr_ignore_report(void *address, void *caller, void *tag);

void cbr_ignore_report(void *address, void *caller, void *tag) {
  (void)address, (void)caller, (void)tag;
}
#endif
#endif
