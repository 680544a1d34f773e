/* SPDX-License-Identifier: Apache-2.0
 *
 * User data that is dead stays dead: for a copy of its handle, for another
 * function of the handle, and for a forked child. Data that is set again,
 * perhaps at the same address, is alive.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subject.h"

static int data, others;

static size_t take(char *bytes, size_t size, size_t count, void *given) {
  (void)bytes;
  (void)subject_called();
  return given == &data ? size * count : 0;
}

static size_t take_too(char *bytes, size_t size, size_t count, void *given) {
  return take(bytes, size, count, given);
}

static size_t count_up(char *bytes, size_t size, size_t count, void *given) {
  (void)bytes;
  *(int *)given = 1;
  return size * count;
}

static int fetch(CURL *handle) {
  int code = curl_easy_perform(handle);
  printf(" %d", code);
  fflush(stdout);
  return code;
}

int main(int count, char **words) {
  if (count != 2) return 2;
  CURL *handle = curl_easy_init();
  curl_easy_setopt(handle, CURLOPT_URL, words[1]);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &data);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
  subject_died(&data);
  printf("fetched");
  fetch(handle);
  CURL *copy = curl_easy_duphandle(handle);
  fetch(copy);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_too);
  fetch(handle);
  pid_t child = fork();
  if (child == 0) {
    fetch(handle);
    _exit(subject_called() != 1); /* unless the child itself was called */
  }
  int status = 1;
  waitpid(child, &status, 0);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, count_up);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &others);
  fetch(handle);
  curl_easy_setopt(copy, CURLOPT_WRITEFUNCTION, count_up);
  curl_easy_setopt(copy, CURLOPT_WRITEDATA, &data);
  fetch(copy);
  printf("\nothers %d, data %d, child %d\n", others, data, status);
  curl_easy_cleanup(handle);
  curl_easy_cleanup(copy);
  return subject_tell();
}
