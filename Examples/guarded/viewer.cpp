// SPDX-License-Identifier: Apache-2.0
//
// An old program, which knows nothing of the registry: libcurl shows a file in
// a window, and the user closes the window before the file has come. Nobody
// tells libcurl.
#include <curl/curl.h>

#include <cstdio>

#include "window.h"

struct viewer {
  struct window *window = window_open();
  int chunks = 0;
};

static std::size_t show(char *bytes, std::size_t size, std::size_t count,
                        void *window) {
  window_show(static_cast<struct window *>(window), bytes, size * count);
  return size * count;
}

static int look_at_user(void *context, curl_off_t, curl_off_t got, curl_off_t,
                        curl_off_t) {
  viewer *it = static_cast<viewer *>(context);
  if (got > 0 && ++it->chunks == 2) window_close(it->window);
  return 0;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  viewer it;
  CURL *handle = curl_easy_init();
  curl_easy_setopt(handle, CURLOPT_URL, arguments[1]);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, show);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, it.window);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, look_at_user);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &it);
  std::printf("libcurl: %s\n", curl_easy_strerror(curl_easy_perform(handle)));
  curl_easy_cleanup(handle);
}
