/* SPDX-License-Identifier: Apache-2.0
 *
 * What a history tells of queues: each message that was not delivered, and
 * counts that add up (G21).
 */
#include "messages.h"

#include "history.h"

static history file;
static cbr_registry registry;

static void begin(uint32_t level) {
  registry = open_with_history(&file, "dropped", level);
}

static void flush(void) {
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
}

/* A17: ninety stale ones are one thing, told with its number. */
static void A17_ninetyStaleAreTold(void) {
  const uint32_t levels[] = {CBR_LEVEL_LIFECYCLE, CBR_LEVEL_CALLS};
  for (int level = 0; level < 2; level++) {
    receiver it = {0};
    payload payloads[100] = {{0}};
    begin(levels[level]);
    cbr_queue queue = add_queue(registry, 0, 0, 0);
    add_receiver(registry, &it, 0, CBR_NONE);
    for (int each = 0; each < 100; each++)
      EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
    EXPECT(CBR_OK, cbr_queue_run(queue, 10, NULL));
    flush();
    EQUAL(90, number_in(&file, "SELECT waiting FROM queues"));
    EQUAL(10, number_in(&file, "SELECT delivered FROM queues"));
    expect_no_rows(&file, "SELECT * FROM queues WHERE difference <> 0");
    end(it.token);
    EQUAL(90, pump(queue));
    flush();
    EQUAL(90, number_in(&file, "SELECT sum(messages) FROM dropped_messages "
                               "WHERE reason = 'CBR_E_STALE'"));
    CHECK(number_in(&file, "SELECT count(*) FROM dropped_messages") <= 8);
    EQUAL(11, number_in(&file, "SELECT min(first_message) FROM dropped_messages"));
    expect_no_rows(&file, "SELECT * FROM dropped_messages WHERE label <> "
                          "'receiver' OR queue_label <> 'queue'");
    EQUAL(0, number_in(&file, "SELECT count(*) FROM refusal"));
    EQUAL(10, number_in(&file, "SELECT sum(calls) FROM token_life "
                               "WHERE kind = 'token'"));
    end(queue);
    expect_freed(payloads, 100);
    close_with_history(registry, &file);
  }
}

/* Every way that a message can go, in one history. */
static void G21_eachReasonIsTold(void) {
  receiver it[3] = {{0}};
  payload payloads[40] = {{0}};
  int next = 0;
  begin(CBR_LEVEL_CALLS);
  for (int each = 0; each < 3; each++)
    add_receiver(registry, &it[each], each == 1 ? CBR_ONE_SHOT : 0, CBR_NONE);
  cbr_queue oldest = add_queue(registry, 0, CBR_QUEUE_DROP_OLDEST, 2);
  for (int each = 0; each < 5; each++)
    EXPECT(CBR_OK, post(oldest, it[0].token, &payloads[next++]));
  cbr_queue latest = add_queue(registry, 0, CBR_QUEUE_KEEP_LATEST, 2);
  for (int each = 0; each < 6; each++)
    EXPECT(CBR_OK, post(latest, it[0].token, &payloads[next++]));
  cbr_queue plain = add_queue(registry, 0, 0, 0);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(plain, it[1].token, &payloads[next++]));
  for (int each = 0; each < 4; each++)
    EXPECT(CBR_OK, post(plain, it[2].token, &payloads[next++]));
  EXPECT(CBR_OK, cbr_queue_run(plain, 5, NULL));
  EQUAL(2, pump(oldest));
  end(oldest);
  end(latest);
  end(plain);
  flush();
  EQUAL(3, number_in(&file, "SELECT sum(messages) FROM dropped_messages "
                            "WHERE reason = 'CBR_E_FULL'"));
  EQUAL(2, number_in(&file, "SELECT sum(messages) FROM dropped_messages "
                            "WHERE reason = 'CBR_E_CONSUMED'"));
  EQUAL(3, number_in(&file, "SELECT sum(messages) FROM dropped_messages "
                            "WHERE reason = 'CBR_E_CLOSED'"));
  EQUAL(5, number_in(&file, "SELECT sum(merged) FROM queues"));
  EQUAL(3, number_in(&file, "SELECT count(*) FROM queues "
                            "WHERE state = 'settled' AND waiting = 0"));
  EQUAL(18, number_in(&file, "SELECT sum(posted) FROM queues"));
  expect_no_rows(&file, "SELECT * FROM queues WHERE dropped_told <> "
                        "dropped_full + dropped_stale + dropped_refused + "
                        "dropped_ended");
  expect_freed(payloads, next);
  end(it[0].token);
  end(it[2].token);
  close_with_history(registry, &file);
}

/* What is told of an ended queue comes before it has settled. */
static void E1_dropsBeforeTheEnd(void) {
  receiver it = {0};
  payload payloads[50] = {{0}};
  begin(CBR_LEVEL_CALLS);
  cbr_queue queue = add_queue(registry, CBR_QUEUE_PUMPED, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 50; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  end(queue);
  flush();
  EQUAL(50, number_in(&file, "SELECT sum(messages) FROM dropped_messages"));
  expect_no_rows(&file, "SELECT * FROM dropped_messages u, token t "
                        "WHERE t.kind = 7 AND u.sequence > "
                        "t.settled_sequence");
  end(it.token);
  close_with_history(registry, &file);
}

/* A thousand drops for two tokens in turns, and a flush in between. */
static void G21_countsWhileItDrops(void) {
  static payload payloads[1000];
  receiver it[2] = {{0}};
  memset(payloads, 0, sizeof payloads);
  begin(CBR_LEVEL_LIFECYCLE);
  cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD,
                              CBR_QUEUE_DROP_OLDEST, 3);
  for (int each = 0; each < 2; each++)
    add_receiver(registry, &it[each], 0, CBR_NONE);
  for (int each = 0; each < 1000; each++) {
    EXPECT(CBR_OK, post(queue, it[each / 3 % 2].token, &payloads[each]));
    if (each == 500) {
      flush();
      expect_no_rows(&file, "SELECT * FROM queues WHERE difference <> 0");
    }
  }
  end(queue);
  flush();
  expect_freed(payloads, 1000);
  EQUAL(1000, number_in(&file, "SELECT posted FROM queues"));
  EQUAL(it[0].count + it[1].count,
        number_in(&file, "SELECT delivered FROM queues"));
  expect_no_rows(&file, "SELECT * FROM queues WHERE dropped_told <> "
                        "dropped_full + dropped_stale + dropped_refused + "
                        "dropped_ended");
  for (int each = 0; each < 2; each++) end(it[each].token);
  close_with_history(registry, &file);
}

int main(void) {
  TEST(A17_ninetyStaleAreTold);
  TEST(G21_eachReasonIsTold);
  TEST(E1_dropsBeforeTheEnd);
  TEST(G21_countsWhileItDrops);
  return finish();
}
