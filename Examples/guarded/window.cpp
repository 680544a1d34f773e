// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <cstdio>
#include <string>

struct window {
  std::string title = "a window";
  std::size_t shown = 0;
};

struct window *window_open(void) { return new window; }

void window_show(struct window *window, const char *, std::size_t length) {
  window->shown += length;
}

void window_close(struct window *window) {
  std::printf("%s is closed after %zu bytes\n", window->title.c_str(),
              window->shown);
  delete window;
}
