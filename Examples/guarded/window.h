/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct window;

struct window *window_open(void);
void window_show(struct window *window, const char *text, size_t length);
void window_close(struct window *window);

#ifdef __cplusplus
}
#endif

#endif
