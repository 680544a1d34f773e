/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches a file; whoever takes its bytes dies at the first of them. Then what
 * a handle's options say in any order: a copy, headers that are written like
 * the body, data without a function.
 */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "subject.h"

static size_t take(char *bytes, size_t size, size_t count, void *data) {
  (void)bytes;
  if (subject_called() == 1) subject_died(data);
  return size * count;
}

static size_t add(char *bytes, size_t size, size_t count, void *data) {
  (void)bytes;
  *(size_t *)data += size * count;
  return size * count;
}

static int count_new(void *data, curl_off_t to_get, curl_off_t got,
                     curl_off_t to_put, curl_off_t put) {
  (void)(to_get + got + to_put + put);
  ++*(int *)data;
  return 0;
}

static int count_old(void *data, double to_get, double got, double to_put,
                     double put) {
  (void)(to_get + got + to_put + put);
  *(int *)data += 1000;
  return 0;
}

/* The old callback of progress and the new one share their data, and the new
 * one is preferred. */
static void fetch_with_progress(const char *url, int is_new) {
  int progress = 0;
  CURL *handle = curl_easy_init();
  curl_easy_setopt(handle, CURLOPT_URL, url);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, fopen("/dev/null", "w"));
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &progress);
  if (is_new) curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, count_new);
  curl_easy_setopt(handle, CURLOPT_PROGRESSFUNCTION, count_old);
  CURLcode code = curl_easy_perform(handle);
  printf("progress %d: %d\n", code,
         progress > 0 && (progress < 1000) == is_new);
  curl_easy_cleanup(handle);
}

static void fetch_by_copy(const char *url) {
  size_t body = 0, headers = 0, other = 0;
  CURL *handle = curl_easy_init();
  curl_easy_setopt(handle, CURLOPT_URL, url);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &other);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &headers);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, add);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
  curl_easy_perform(handle);
  printf("first: %zu bytes, headers %d, other %zu\n", body, headers > 0,
         other);
  body = headers = 0;
  CURL *copy = curl_easy_duphandle(handle);
  curl_easy_cleanup(handle);
  CURLcode code = curl_easy_perform(copy);
  printf("copy %d: %d, %zu bytes, headers %d, other %zu\n", code, code == 0,
         body, headers > 0, other);
  curl_easy_reset(copy);
  curl_easy_setopt(copy, CURLOPT_URL, url);
  curl_easy_setopt(copy, CURLOPT_WRITEDATA, fopen("/dev/null", "w"));
  printf("reset %d\n", curl_easy_perform(copy));
  curl_easy_cleanup(copy);
}

int main(int count, char **arguments) {
  static char data;
  CURL *handle = curl_easy_init();
  if (count != 2) return 2;
  curl_easy_setopt(handle, CURLOPT_URL, arguments[1]);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &data);
  printf("fetched %d\n", curl_easy_perform(handle));
  curl_easy_cleanup(handle);
  fetch_by_copy(arguments[1]);
  fetch_with_progress(arguments[1], 0);
  fetch_with_progress(arguments[1], 1);
  return subject_tell();
}
