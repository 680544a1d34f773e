/* SPDX-License-Identifier: Apache-2.0
 *
 * Three downloads by libcurl's multi interface, in one loop of epoll that also
 * runs a queue. Each is a task of one session, whose delegate is told there:
 *
 *   patient  is asked about the response, and answers late, on another thread
 *   curious  cancels itself when it has seen 3 000 bytes
 *   saved    is handed over to a second delegate, which writes a file
 *
 * Then the session is finished, and the loop ends when that says so. libcurl
 * is never in a callback of the library, nor the library in one of libcurl's,
 * that the other could free.
 *
 *   downloader HISTORY URL FILE */
#define _GNU_SOURCE
#include <callback_registry.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FAIL(...) \
  (fprintf(stderr, "downloader: " __VA_ARGS__), fputc('\n', stderr), exit(1))

static void must(cbr_status status) {
  if (status != CBR_OK)
    FAIL("%s: %s", cbr_status_name(status), cbr_last_error());
}

/* ------------------------------------------------------------ Transfers -- */

enum { PATIENT, CURIOUS, SAVED, TRANSFERS };
static const char *const names[TRANSFERS] = {"patient", "curious", "saved"};

/* What libcurl's callbacks are given: a task's number, which may be dead, and
 * the transfer's own handle. */
typedef struct transfer {
  cbr_task task;
  CURL *easy;
  bool has_responded;
} transfer;

static CURLM *multi;
static transfer transfers[TRANSFERS];
static int loop, timer;

static size_t on_data(char *bytes, size_t size, size_t count, void *pointer) {
  transfer *it = pointer;
  if (!it->has_responded) {
    long code = 0;
    curl_easy_getinfo(it->easy, CURLINFO_RESPONSE_CODE, &code);
    it->has_responded = true;
    (void)cbr_task_respond(it->task, &code, sizeof code);
  }
  switch (cbr_task_data(it->task, bytes, size * count)) {
    case CBR_OK: return size * count;
    case CBR_E_FULL: return CURL_WRITEFUNC_PAUSE; /* until the reply */
    default: return CURL_WRITEFUNC_ERROR; /* cancelled: curl stops, too */
  }
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context,
                     void *known) {
  (void)easy, (void)context;
  struct epoll_event event = {.data.fd = socket};
  if (what == CURL_POLL_REMOVE)
    return epoll_ctl(loop, EPOLL_CTL_DEL, socket, NULL), 0;
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  epoll_ctl(loop, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  curl_multi_assign(multi, socket, multi);
  return 0;
}

static int on_timer(CURLM *it, long milliseconds, void *context) {
  (void)it, (void)context;
  struct itimerspec when = {{0, 0}, {0, 0}};
  when.it_value.tv_sec = milliseconds / 1000;
  when.it_value.tv_nsec = milliseconds % 1000 * 1000000 + (milliseconds == 0);
  if (milliseconds < 0) when.it_value = (struct timespec){0, 0};
  timerfd_settime(timer, 0, &when, NULL);
  return 0;
}

static void begin_transfer(transfer *it, const char *url) {
  it->easy = curl_easy_init();
  curl_easy_setopt(it->easy, CURLOPT_URL, url);
  curl_easy_setopt(it->easy, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(it->easy, CURLOPT_WRITEDATA, it);
  curl_easy_setopt(it->easy, CURLOPT_PRIVATE, it);
  curl_easy_setopt(it->easy, CURLOPT_BUFFERSIZE, 1024L);
  if (curl_multi_add_handle(multi, it->easy) != CURLM_OK) FAIL("no transfer");
}

/* Tells the tasks of transfers that have come to their end. */
static void end_transfers(void) {
  int left;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
    transfer *it;
    if (message->msg != CURLMSG_DONE) continue;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&it);
    (void)cbr_task_complete(it->task, (int)message->data.result);
    curl_multi_remove_handle(multi, it->easy);
    curl_easy_cleanup(it->easy);
    it->easy = NULL;
  }
}

/* A paused transfer goes on when its task can take more. */
static void resume_transfers(void) {
  for (int each = 0; each < TRANSFERS; each++)
    if (transfers[each].easy)
      curl_easy_pause(transfers[each].easy, CURLPAUSE_CONT);
}

/* ------------------------------------------------------------ Delegates -- */

typedef struct reader {
  size_t bytes[TRANSFERS];
  int completed, errors[TRANSFERS];
  bool is_over;
  cbr_token writer;
  pthread_t thinker;
  cbr_reply question;
} reader;

static int number_of(cbr_task task) {
  return (int)(intptr_t)cbr_task_context(task) - 1;
}

/* Thinks about it on a thread of its own. */
static void *think(void *context) {
  reader *self = context;
  usleep(100 * 1000);
  must(cbr_reply_send(self->question, CBR_ALLOW, CBR_NONE));
  return NULL;
}

static void reader_response(void *context, cbr_task task,
                            const void *response, size_t size,
                            cbr_reply reply) {
  reader *self = context;
  long code = 0;
  if (size == sizeof code) memcpy(&code, response, size);
  int number = number_of(task);
  printf("%s: response %ld\n", names[number], code);
  switch (number) {
    case PATIENT:
      self->question = reply;
      if (pthread_create(&self->thinker, NULL, think, self) != 0)
        FAIL("no thread");
      break;
    case CURIOUS: must(cbr_reply_send(reply, CBR_ALLOW, CBR_NONE)); break;
    default: must(cbr_reply_send(reply, CBR_HAND_OVER, self->writer));
  }
}

static void reader_data(void *context, cbr_task task, const void *bytes,
                        size_t size) {
  reader *self = context;
  int number = number_of(task);
  (void)bytes;
  self->bytes[number] += size;
  if (number == CURIOUS && self->bytes[number] >= 3000)
    (void)cbr_task_cancel(task);
}

static void reader_complete(void *context, cbr_task task, int error) {
  reader *self = context;
  int number = number_of(task);
  self->completed++;
  self->errors[number] = error;
  printf("%s: complete, error %d, %zu bytes\n", names[number], error,
         self->bytes[number]);
}

static void reader_hand_over(void *context, cbr_task task,
                             cbr_token successor) {
  (void)context, (void)successor;
  printf("%s: handed over\n", names[number_of(task)]);
}

static void reader_invalid(void *context, cbr_session session,
                           cbr_reason reason) {
  (void)session, (void)reason;
  ((reader *)context)->is_over = true;
  puts("session: over");
}

typedef struct writer {
  FILE *file;
  size_t bytes;
  int completed;
} writer;

static void writer_data(void *context, cbr_task task, const void *bytes,
                        size_t size) {
  writer *self = context;
  if (fwrite(bytes, 1, size, self->file) != size) (void)cbr_task_cancel(task);
  self->bytes += size;
}

static void writer_complete(void *context, cbr_task task, int error) {
  writer *self = context;
  self->completed += error == 0;
  printf("%s: written, error %d, %zu bytes\n", names[number_of(task)], error,
         self->bytes);
}

static void writer_destroyed(void *context) {
  if (fclose(((writer *)context)->file) != 0) FAIL("the file is not whole");
}

static cbr_token add_delegate(cbr_registry registry, const char *label,
                              const cbr_function *methods, void *context,
                              cbr_destroy destroy) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.label = label;
  what.interface = cbr_session_interface();
  what.methods = methods;
  what.context = context;
  what.destroy = destroy;
  must(cbr_register(registry, &what, &token));
  return token;
}

/* -------------------------------------------------------------- The loop -- */

static void watch(int file) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = file};
  if (epoll_ctl(loop, EPOLL_CTL_ADD, file, &event) != 0) FAIL("no loop");
}

static void run_until_over(cbr_queue queue, const reader *reader) {
  int descriptor = cbr_queue_descriptor(queue), running;
  while (!reader->is_over) {
    struct epoll_event event;
    if (epoll_wait(loop, &event, 1, 20000) != 1) FAIL("nothing happens");
    if (event.data.fd == descriptor) {
      must(cbr_queue_run(queue, 64, NULL));
      resume_transfers();
    } else if (event.data.fd == timer) {
      uint64_t times;
      if (read(timer, &times, sizeof times) == sizeof times)
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    } else {
      int what = (event.events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                 (event.events & ~(uint32_t)EPOLLOUT ? CURL_CSELECT_IN : 0);
      curl_multi_socket_action(multi, event.data.fd, what, &running);
    }
    end_transfers();
  }
}

int main(int count, char **arguments) {
  if (count != 4) FAIL("downloader HISTORY URL FILE");
  setvbuf(stdout, NULL, _IOLBF, 0);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  loop = epoll_create1(EPOLL_CLOEXEC);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);

  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry registry;
  options.label = "downloader";
  options.history_path = arguments[1];
  must(cbr_registry_open(&options, &registry));

  cbr_queue queue;
  cbr_queue_options loop_options = CBR_QUEUE_OPTIONS_INIT;
  loop_options.label = "loop";
  loop_options.kind = CBR_QUEUE_PUMPED;
  must(cbr_queue_create(registry, &loop_options, &queue));
  watch(cbr_queue_descriptor(queue));
  watch(timer);

  const cbr_function reading[CBR_SESSION_METHODS] = {
      CBR_FUNCTION_CAST_(cbr_function, reader_response),
      CBR_FUNCTION_CAST_(cbr_function, reader_data),
      CBR_FUNCTION_CAST_(cbr_function, reader_complete),
      CBR_FUNCTION_CAST_(cbr_function, reader_invalid),
      CBR_FUNCTION_CAST_(cbr_function, reader_hand_over)};
  const cbr_function writing[CBR_SESSION_METHODS] = {
      NULL, CBR_FUNCTION_CAST_(cbr_function, writer_data),
      CBR_FUNCTION_CAST_(cbr_function, writer_complete), NULL, NULL};
  reader reader = {.is_over = false};
  writer writer = {.file = fopen(arguments[3], "w")};
  if (!writer.file) FAIL("%s cannot be written", arguments[3]);
  reader.writer = add_delegate(registry, "writer", writing, &writer,
                               writer_destroyed);
  cbr_session_options session_options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session;
  session_options.label = "downloads";
  session_options.delegate =
      add_delegate(registry, "reader", reading, &reader, NULL);
  session_options.queue = queue;
  must(cbr_session_create(registry, &session_options, &session));

  for (int each = 0; each < TRANSFERS; each++) {
    cbr_task_options what = CBR_TASK_OPTIONS_INIT;
    what.label = names[each];
    what.context = (void *)(intptr_t)(each + 1);
    what.max_waiting_bytes = 64 << 10;
    must(cbr_task_begin(session, &what, &transfers[each].task));
    begin_transfer(&transfers[each], arguments[2]);
  }
  must(cbr_session_finish(session));
  run_until_over(queue, &reader);

  pthread_join(reader.thinker, NULL);
  must(cbr_invalidate(reader.writer, CBR_REASON_ENDED)); /* closes the file */
  must(cbr_invalidate_wait(session_options.delegate, CBR_REASON_ENDED,
                           CBR_FOREVER));
  must(cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  for (int each = 0; each < TRANSFERS; each++)
    if (transfers[each].easy) {
      curl_multi_remove_handle(multi, transfers[each].easy);
      curl_easy_cleanup(transfers[each].easy);
    }
  curl_multi_cleanup(multi);
  must(cbr_registry_close(registry, CBR_FOREVER));
  close(timer);
  close(loop);
  curl_global_cleanup();
  bool is_right = reader.completed == 2 && writer.completed == 1 &&
                  reader.errors[PATIENT] == 0 &&
                  reader.errors[CURIOUS] == CBR_TASK_CANCELLED;
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
