// SPDX-License-Identifier: Apache-2.0
//
// A transfer of 8 MB by libcurl, plain and with the guard of libcurl that was
// linked in: its history is in memory, with each call. It comes from a file,
// where nothing but the transfer is measured; and from a server in threads of
// this process, where two threads and the history's share the cores.
#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ours.h"

enum { SIZE = 8 << 20 };

// The library's own, beside the one that stands in for it.
CURLcode __real_curl_easy_setopt(CURL *handle, CURLoption option, ...);

static CURL *plain, *guarded;
static uint64_t taken;

static size_t take(char *bytes, size_t size, size_t count, void *data) {
  (void)bytes;
  *(uint64_t *)data += size * count;
  return size * count;
}

static void must(CURLcode code) {
  if (code == CURLE_OK) return;
  fprintf(stderr, "guarded: %s\n", curl_easy_strerror(code));
  exit(1);
}

static void answer(int peer) {
  static char body[SIZE];
  dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", SIZE);
  for (size_t sent = 0; sent < SIZE;) {
    ssize_t part = send(peer, body + sent, SIZE - sent, MSG_NOSIGNAL);
    if (part <= 0) return;
    sent += (size_t)part;
  }
}

// Answers each request on one connection.
static void *serve_peer(void *context) {
  char request[4096];
  int peer = (int)(intptr_t)context;
  size_t got = 0;
  ssize_t more;
  while ((more = recv(peer, request + got, sizeof(request) - 1 - got, 0)) > 0) {
    got += (size_t)more;
    request[got] = 0;
    if (!strstr(request, "\r\n\r\n")) continue;
    got = 0;
    answer(peer);
  }
  close(peer);
  return NULL;
}

static void *serve(void *context) {
  int peer;
  while ((peer = accept(*(int *)context, NULL, NULL)) >= 0) {
    pthread_t server;
    if (pthread_create(&server, NULL, serve_peer, (void *)(intptr_t)peer))
      exit(1);
    pthread_detach(server);
  }
  return NULL;
}

// Returns the port.
static unsigned start_server(void) {
  static int listener;
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  pthread_t server;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) ||
      listen(listener, 8) ||
      getsockname(listener, (struct sockaddr *)&address, &size) ||
      pthread_create(&server, NULL, serve, &listener)) {
    perror("guarded: the server");
    exit(1);
  }
  return ntohs(address.sin_port);
}

static void run_plain(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) must(curl_easy_perform(plain));
}

static void run_guarded(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) must(curl_easy_perform(guarded));
}

// Returns the name of a file of SIZE bytes, which the caller removes.
static const char *make_file(void) {
  static char name[] = "/tmp/callbackregistry-bench-XXXXXX";
  static char body[SIZE];
  memset(body, 'x', SIZE);  // a hole would be read from no memory at all
  int file = mkstemp(name);
  if (file < 0 || write(file, body, SIZE) != SIZE || close(file)) {
    perror("guarded: the file");
    exit(1);
  }
  return name;
}

static void measure_transfers(const char *group, const char *address) {
  must(curl_easy_setopt(plain, CURLOPT_URL, address));
  must(curl_easy_setopt(guarded, CURLOPT_URL, address));
  bench_group(group);
  bench_add("8 MB by libcurl", run_plain);
  bench_add("... guarded, with each call in the history", run_guarded);
  bench_measure();
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  char address[64];
  plain = curl_easy_init();
  guarded = curl_easy_init();
  must(__real_curl_easy_setopt(plain, CURLOPT_WRITEFUNCTION, take));
  must(__real_curl_easy_setopt(plain, CURLOPT_WRITEDATA, &taken));
  must(curl_easy_setopt(guarded, CURLOPT_WRITEFUNCTION, take));
  must(curl_easy_setopt(guarded, CURLOPT_WRITEDATA, &taken));
  const char *file = make_file();
  snprintf(address, sizeof(address), "file://%s", file);
  measure_transfers("guarded", address);
  unlink(file);
  snprintf(address, sizeof(address), "http://127.0.0.1:%u/", start_server());
  measure_transfers("guarded loopback", address);
}
