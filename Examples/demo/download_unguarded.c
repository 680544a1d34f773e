/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads a file and shows it in a window, which the user closes half-way.
 * libcurl does not know, and goes on calling what is gone.
 *
 *   download_unguarded URL
 */
#define _GNU_SOURCE /* for pthread_setname_np */

#include <curl/curl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void must(bool done, const char *what) {
  if (done) return;
  fprintf(stderr, "failed: %s\n", what);
  exit(EXIT_FAILURE);
}

/* The window is the owner of both callbacks. */
struct window {
  uint64_t bytes;
  uint64_t checksum;
  int percent;
};

static bool asked_to_close;
static sem_t half_way, closed;

static void window_data(void *context, const char *bytes, size_t count) {
  struct window *window = context;
  window->bytes += count;
  for (size_t index = 0; index < count; ++index)
    window->checksum = window->checksum * 31 + (unsigned char)bytes[index];
}

static void window_progress(void *context, curl_off_t now, curl_off_t total) {
  struct window *window = context;
  if (!asked_to_close && total > 0 && now >= total / 2) {
    asked_to_close = true;
    sem_post(&half_way); /* from here on, two threads are at it */
  }
  window->percent = total > 0 ? (int)(100 * now / total) : 0;
}

/* Another thread: the user closes the window. */
static void *user(void *context) {
  struct window *window = context;
  pthread_setname_np(pthread_self(), "user");
  sem_wait(&half_way);
  free(window);
  puts("window: closed half-way");
  sem_post(&closed);
  return NULL;
}

/* What libcurl calls, and how often. */
static unsigned long calls;

static size_t on_data(char *bytes, size_t size, size_t count, void *userdata) {
  ++calls;
  window_data(userdata, bytes, size * count);
  return size * count;
}

static int on_progress(void *userdata, curl_off_t total, curl_off_t now,
                       curl_off_t upload_total, curl_off_t upload_now) {
  (void)upload_total, (void)upload_now;
  ++calls;
  window_progress(userdata, now, total);

  /* The rest of the download comes after the closing, in every run. */
  static bool waited;
  if (asked_to_close && !waited) sem_wait(&closed), waited = true;
  return 0;
}

int main(int argc, char **argv) {
  must(argc == 2, "usage: download_unguarded URL");
  pthread_setname_np(pthread_self(), "download");
  struct window *window = calloc(1, sizeof *window);
  CURL *curl = curl_easy_init();
  must(window != NULL && curl != NULL, "memory");
  must(sem_init(&half_way, 0, 0) == 0 && sem_init(&closed, 0, 0) == 0, "gate");

  curl_easy_setopt(curl, CURLOPT_URL, argv[1]);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, window);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, window);

  pthread_t thread;
  must(pthread_create(&thread, NULL, user, window) == 0, "thread");
  CURLcode result = curl_easy_perform(curl);
  sem_post(&half_way); /* in case the download failed before */
  pthread_join(thread, NULL);

  curl_off_t size = 0;
  curl_easy_getinfo(curl, CURLINFO_SIZE_DOWNLOAD_T, &size);
  curl_easy_cleanup(curl);
  printf("libcurl: %s, %lld bytes, %lu calls\n", curl_easy_strerror(result),
         (long long)size, calls);
  return result == CURLE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
