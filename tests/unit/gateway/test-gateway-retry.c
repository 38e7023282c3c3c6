/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/answer-text.h"
#include "transport/retry.h"

#include "test.h"

/* What answers mean, how long is waited after them, and what the log says of them. */

#define SECOND_NS UINT64_C(1000000000)

TEST(each_status_has_its_verdict) {
    /* clang-format off */
    static const struct { long status; SendVerdict verdict; } rows[] = {
        {200, SEND_ACCEPTED}, {202, SEND_ACCEPTED}, {204, SEND_ACCEPTED},
        {301, SEND_UNAUTHORISED}, {307, SEND_UNAUTHORISED},
        {400, SEND_REFUSED}, {401, SEND_UNAUTHORISED}, {403, SEND_UNAUTHORISED},
        {404, SEND_REFUSED}, {408, SEND_AGAIN}, {413, SEND_TOO_LARGE}, {415, SEND_REFUSED},
        {422, SEND_REFUSED}, {425, SEND_AGAIN}, {429, SEND_BUSY},
        {500, SEND_AGAIN}, {502, SEND_AGAIN}, {503, SEND_AGAIN}, {504, SEND_AGAIN},
        {0, SEND_AGAIN}, {100, SEND_AGAIN}, {999, SEND_AGAIN},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        TransportAnswer answer = {.status = rows[i].status};

        CHECK_EQ(send_verdict(&answer), rows[i].verdict);
    }
}

TEST(no_answer_is_tried_again_and_may_have_arrived_only_if_something_was_sent) {
    TransportAnswer answer = {.error = -ECONNREFUSED};

    CHECK_EQ(send_verdict(&answer), SEND_AGAIN);
    CHECK(!send_may_have_arrived(&answer));
    answer = (TransportAnswer){.error = -ETIMEDOUT, .sent_bytes = 100};
    CHECK(send_may_have_arrived(&answer));
    answer = (TransportAnswer){.status = 503, .sent_bytes = 100};
    CHECK(!send_may_have_arrived(&answer));
    answer = (TransportAnswer){.status = 504, .sent_bytes = 100};
    CHECK(send_may_have_arrived(&answer));
}

TEST(waits_double_to_the_limit_and_use_the_whole_span) {
    uint64_t limit = SECOND_NS;

    for (unsigned failures = 1; failures < 40; failures++) {
        uint64_t longest = retry_delay_ns(failures, SEND_BUSY, 0, SECOND_NS, UINT64_MAX);

        CHECK(longest <= limit && longest > limit / 100 * 99);
        CHECK_EQ(retry_delay_ns(failures, SEND_BUSY, 0, SECOND_NS, 0), SECOND_NS / 10);
        limit = limit * 2 < RETRY_MAX_NS ? limit * 2 : RETRY_MAX_NS;
    }
}

TEST(an_engine_that_is_away_is_tried_in_each_interval) {
    for (unsigned failures = 5; failures < 40; failures++)
        CHECK(retry_delay_ns(failures, SEND_AGAIN, 0, 10 * SECOND_NS, UINT64_MAX) <=
              10 * SECOND_NS);
    CHECK(retry_delay_ns(1, SEND_AGAIN, 0, 10 * SECOND_NS, UINT64_MAX) <= SECOND_NS);
    CHECK(retry_delay_ns(40, SEND_AGAIN, 70 * SECOND_NS, 10 * SECOND_NS, 0) >= 70 * SECOND_NS);
}

TEST(engine_says_when_to_come_back_but_not_later_than_in_an_hour) {
    CHECK(retry_delay_ns(1, SEND_BUSY, 7 * SECOND_NS, SECOND_NS, 0) >= 7 * SECOND_NS);
    CHECK(retry_delay_ns(1, SEND_BUSY, 7 * SECOND_NS, SECOND_NS, UINT64_MAX) <= 8 * SECOND_NS);
    CHECK(retry_delay_ns(1, SEND_BUSY, UINT64_MAX, SECOND_NS, UINT64_MAX) <=
          RETRY_AFTER_MAX_NS / 10 * 11);
    /* A short Retry-After does not shorten a long row of failures. */
    CHECK(retry_delay_ns(10, SEND_BUSY, SECOND_NS, SECOND_NS, UINT64_MAX) > 100 * SECOND_NS);
}

TEST(body_above_a_limit_of_go_is_too_large_whatever_the_status) {
    TransportAnswer answer = {.status = 400,
                              .body = "\x08\x03\x12\x1dhttp: request body too large"};
    char text[256];

    CHECK_EQ(send_verdict(&answer), SEND_TOO_LARGE);
    answer_sentence(&answer, "http://e", 70000, text, sizeof(text));
    CHECK_STREQ(text, "The engine at http://e says that a request of 70000 bytes is too large "
                      "(HTTP 400): http: request body too large");
    answer.status = 500;
    CHECK_EQ(send_verdict(&answer), SEND_AGAIN);
    answer = (TransportAnswer){.status = 413, .body = "\x01\x02\n"};
    answer_sentence(&answer, "http://e", 70000, text, sizeof(text));
    CHECK_STREQ(
        text, "The engine at http://e says that a request of 70000 bytes is too large (HTTP 413)");
}

TEST(sentences_name_engine_and_status_and_escape_the_answer) {
    TransportAnswer answer = {.status = 429, .body = "rate limit of 4MB/s\x1b[31m\nsecond line"};
    char text[256];

    answer_sentence(&answer, "http://e:4040/push?key=geheim", 0, text, sizeof(text));
    CHECK(strstr(text, "http://e:4040/push asks for fewer requests (HTTP 429): rate limit"));
    CHECK(!strstr(text, "geheim") && !strchr(text, '\x1b') && !strstr(text, "second"));
    answer = (TransportAnswer){.error = -ECONNREFUSED, .problem = "Connection refused"};
    answer_sentence(&answer, "http://e", 0, text, sizeof(text));
    CHECK_STREQ(text, "The engine at http://e does not answer: Connection refused");
    memset(answer.body, 'x', sizeof(answer.body) - 1);
    answer = (TransportAnswer){.status = 400, .body = "\xc3\xa4\xc3\xa4\xc3\xa4"};
    answer_sentence(&answer, "http://e", 0, text, 48);
    CHECK(strlen(text) < 48);
}

TEST_MAIN()
