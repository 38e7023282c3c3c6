/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "status/status.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "transport/retry.h"
#include "status/status-value.h"
#include "test.h"
#include "util/file.h"
#include "util/text.h"

/* The state of the gateway as others read it: JSON, metrics, and what is derived for both. */

#define S UINT64_C(1000000000)

static void fill(GatewayStatus *status) {
    *status = (GatewayStatus){.start_ns = 1000 * S,
                              .now_ns = 5000 * S,
                              .cpu_ns = S / 2,
                              .resident_bytes = 9 << 20,
                              .interval_ns = 10 * S,
                              .host = "web-1",
                              .n_sends = 2,
                              .scrapes = 7};
    status->source = (SourceStatus){.connected = true, .until_ns = 4995 * S, .samples = 12};
    status->sends[0] = (DestinationStatus){.name = "a",
                                           .type = "pyroscope",
                                           .live_until_ns = 4990 * S,
                                           .last_success_ns = 4999 * S,
                                           .sent_bytes = 12345,
                                           .sent_samples = 99};
    status->sends[1] = (DestinationStatus){.name = "b",
                                           .type = "otlp",
                                           .live_until_ns = 4990 * S,
                                           .backlog_ns = 600 * S,
                                           .backlog_since_ns = 4000 * S,
                                           .ranges = 3,
                                           .last_success_ns = 4000 * S,
                                           .is_waiting = true,
                                           .retry_ns = 5030 * S,
                                           .last_http_status = 429,
                                           .error_status = 429,
                                           .last_error_ns = 4998 * S,
                                           .last_error = "Refused \x1b[2J\xff \"slow\""};
}

static const char *text_of(Buffer *out) {
    text_putc(out, '\0');
    return buffer_error(out) ? "" : (const char *)out->data;
}

TEST(json_has_times_in_microseconds_and_escaped_texts) {
    _cleanup_(buffer_done) Buffer out = {};
    GatewayStatus status;
    json_t *json, *sends, *b;

    fill(&status);
    status_json(&status, &out);
    json = json_loads(text_of(&out), 0, NULL);
    CHECK(json);
    CHECK_EQ(json_integer_value(json_object_get(json, "nowUsec")), 5000000000LL);
    CHECK_EQ(json_integer_value(json_object_get(json, "pid")), (json_int_t)getpid());
    sends = json_object_get(json, "destinations");
    CHECK_EQ(json_array_size(sends), (size_t)2);
    b = json_array_get(sends, 1);
    CHECK_EQ(json_integer_value(json_object_get(b, "lagUsec")), 1000000000LL);
    CHECK_EQ(json_integer_value(json_object_get(b, "retryUsec")), 5030000000LL);
    CHECK_STREQ(json_string_value(json_object_get(b, "lastError")),
                "Refused \\x1b[2J\\xff \"slow\"");
    CHECK(strstr(json_string_value(json_object_get(b, "remedy")), "Share="));
    CHECK(json_is_null(json_object_get(json_array_get(sends, 0), "retryUsec")));
    CHECK_STREQ(json_string_value(json_object_get(json_array_get(sends, 0), "remedy")), "");
    json_decref(json);
}

TEST(the_lag_is_the_age_of_the_oldest_samples_that_were_not_sent) {
    GatewayStatus status;

    fill(&status);
    CHECK_EQ(status_send_lag_ns(&status, &status.sends[0]), 10 * S);
    CHECK_EQ(status_send_lag_ns(&status, &status.sends[1]), 1000 * S);
    status.sends[1].live_until_ns = 0;
    status.sends[1].backlog_ns = 0;
    CHECK_EQ(status_send_lag_ns(&status, &status.sends[1]), 4000 * S);
    status.sends[0].live_until_ns = 6000 * S;
    CHECK_EQ(status_send_lag_ns(&status, &status.sends[0]), (uint64_t)0);
}

TEST(the_live_lag_is_the_age_of_the_newest_samples_that_were_sent) {
    GatewayStatus status;

    fill(&status);
    CHECK_EQ(status_send_live_lag_ns(&status, &status.sends[0]), 4000 * S);
    status.sends[1].newest_ns = 4985 * S;
    CHECK_EQ(status_send_live_lag_ns(&status, &status.sends[1]), 15 * S);
    status.sends[1].newest_ns = 5001 * S;
    CHECK_EQ(status_send_live_lag_ns(&status, &status.sends[1]), (uint64_t)0);
}

TEST(memory_of_its_own_is_a_part_of_what_is_resident) {
    GatewayStatus status = {};
    size_t size = (size_t)16 << 20;
    uint8_t *more;
    uint64_t before;

    status_measure(&status);
    before = status.anonymous_bytes;
    CHECK(before > 0 && before < status.resident_bytes);
    more = malloc(size);
    CHECK(more);
    memset(more, 1, size);
    status_measure(&status);
    CHECK(status.anonymous_bytes >= before + size / 2);
    CHECK(status.anonymous_bytes < status.resident_bytes);
    free(more);
}

TEST(a_destination_is_up_when_nothing_failed_since_its_last_success) {
    DestinationStatus send = {.name = "a"};

    CHECK(!status_send_is_up(&send));
    send.last_error_ns = 5;
    CHECK(!status_send_is_up(&send));
    send.last_success_ns = 6;
    CHECK(status_send_is_up(&send));
    send.last_error_ns = 7;
    CHECK(!status_send_is_up(&send));
}

TEST(each_answer_of_an_engine_that_fails_has_a_remedy) {
    static const struct {
        long status;
        const char *word;
    } rows[] = {{SEND_STATUS_LOCAL, "folder of positions"},
                {SEND_STATUS_SOURCE, "'profctl status' shows whether profd runs"},
                {0, "network"},
                {301, "redirect"},
                {400, "limits"},
                {401, "TokenFile="},
                {403, "Tenant="},
                {404, "URL="},
                {413, "max_request_body_size"},
                {422, "limits"},
                {429, "Share="},
                {500, "log of the engine"},
                {503, "log of the engine"},
                {407, "Proxy="}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const DestinationStatus send = {.last_error_ns = 1, .error_status = rows[i].status};

        CHECK(strstr(status_send_remedy(&send), rows[i].word));
    }
}

TEST(each_answer_of_an_object_store_has_a_remedy_of_its_own) {
    static const struct {
        long status;
        const char *word;
    } rows[] = {{SEND_STATUS_LOCAL, "folder of positions"},
                {SEND_STATUS_SOURCE, "'profctl status' shows whether profd runs"},
                {0, "that the store runs"},
                {200, "log of the store"},
                {301, "redirect"},
                {401, "access key"},
                {403, "the bucket"},
                {404, "the bucket"},
                {407, "Proxy="},
                {409, "log of the store"},
                {413, "ObjectIntervalSec="},
                {429, "ObjectIntervalSec="},
                {501, "log of the store"},
                {503, "log of the store"}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const DestinationStatus send = {
            .type = "s3", .last_error_ns = 1, .error_status = rows[i].status};
        const char *remedy = status_send_remedy(&send);

        CHECK(strstr(remedy, rows[i].word));
        CHECK(!strstr(remedy, "engine"));
    }
}

TEST(what_is_lost_without_an_engine_has_no_remedy) {
    const DestinationStatus send = {.last_error_ns = 1, .error_status = SEND_STATUS_LOST};

    CHECK_STREQ(status_send_remedy(&send), "");
}

TEST(the_remedy_of_a_loss_stays_beside_its_error_when_the_destination_is_up_again) {
    DestinationStatus send = {.last_error_ns = 1, .last_success_ns = 2, .last_http_status = 200};

    send.error_status = 413;
    CHECK(strstr(status_send_remedy(&send), "OTHER"));
    send.error_status = 400;
    CHECK(strstr(status_send_remedy(&send), "limits"));
    send.error_status = 503;
    CHECK_STREQ(status_send_remedy(&send), "");
    send.error_status = 408;
    CHECK_STREQ(status_send_remedy(&send), "");
    send.last_error_ns = 0;
    send.error_status = 413;
    CHECK_STREQ(status_send_remedy(&send), "");
}

/* Each family has HELP and TYPE, in this order, and then its values. */
TEST(metrics_have_help_type_and_a_value_for_each_destination) {
    _cleanup_(buffer_done) Buffer out = {};
    GatewayStatus status;
    const char *text;

    fill(&status);
    status_metrics(&status, &out);
    text = text_of(&out);
    CHECK(strstr(text, "# TYPE profd_gateway_cpu_seconds_total counter\n"
                       "profd_gateway_cpu_seconds_total 0.5\n"));
    CHECK(strstr(text, "profd_gateway_destination_up{destination=\"a\",type=\"pyroscope\"} 1\n"
                       "profd_gateway_destination_up{destination=\"b\",type=\"otlp\"} 0\n"));
    CHECK(strstr(text, "profd_gateway_destination_sent_bytes_total{destination=\"a\","
                       "type=\"pyroscope\"} 12345\n"));
    CHECK(strstr(text, "profd_gateway_destination_backlog_seconds{destination=\"b\","
                       "type=\"otlp\"} 600\n"));
    CHECK(strstr(text, "profd_gateway_source_lag_seconds 5\n"));
    CHECK(strstr(text, "profd_gateway_scrapes_total 7\n"));
}

TEST(lag_of_reading_counts_from_the_start_until_something_was_read) {
    _cleanup_(buffer_done) Buffer out = {};
    GatewayStatus status;

    fill(&status);
    status.source.until_ns = 0;
    status_metrics(&status, &out);
    CHECK(strstr(text_of(&out), "profd_gateway_source_lag_seconds 4000\n"));
}

TEST(without_destinations_no_metric_of_them_is_printed) {
    _cleanup_(buffer_done) Buffer out = {};
    GatewayStatus status;

    fill(&status);
    status.n_sends = 0;
    status_metrics(&status, &out);
    CHECK(!strstr(text_of(&out), "destination"));
}

TEST(the_file_is_replaced_and_everybody_may_read_it) {
    char folder[] = "/tmp/test-gateway-status-XXXXXX", path[64], text[8192];
    GatewayStatus status;
    struct stat before, after;

    fill(&status);
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/" STATUS_FILE, folder);
    CHECK_OK(status_write(&status, folder));
    CHECK_OK(stat(path, &before));
    CHECK_EQ(before.st_mode & 07777U, 0644U);
    status.scrapes = 4711;
    CHECK_OK(status_write(&status, folder));
    CHECK_OK(stat(path, &after));
    CHECK(before.st_ino != after.st_ino);
    CHECK_OK(file_read_text(path, text, sizeof(text)));
    CHECK(strstr(text, "4711"));
    status_remove(folder);
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_OK(rmdir(folder));
    CHECK_EQ(status_write(&status, folder), -ENOENT);
}

TEST_MAIN()
