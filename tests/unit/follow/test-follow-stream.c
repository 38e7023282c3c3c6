/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "follow/follow.h"

#include <sys/socket.h>
#include <unistd.h>

#include "make-container.h"

#include "test.h"

/* Streams made by hand. A stream is a list of times: positive ones are samples, negative ones are
 * watermarks. */

enum { SEEN_MAX = 64 };

static const uint64_t id = 11;

static Buffer make(const int64_t *times, size_t n) {
    PdAttr attr = {.type = PD_TYPE_SOFTWARE,
                   .flags = PD_ATTR_SAMPLE_ID_ALL,
                   .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME};
    Maker m = {};

    put_pipe_header(&m);
    put_head(&m, PD_RECORD_HEADER_ATTR, 0, 8 + 64 + 8);
    pd_attr_encode(&attr, 64, &m.b, false);
    buffer_u64(&m.b, id, false);
    for (size_t i = 0; i < n; i++)
        if (times[i] < 0)
            pd_stream_mark_write(&m.b, &(PdStreamMark){.time = (uint64_t)-times[i]});
        else
            put_sample(&m, id, (uint64_t)times[i]);
    return m.b;
}

/* Reads a stream that ends after these times, and appends the samples that it returns. */
static int follow_all(Follow *follow, const int64_t *times, size_t n, uint64_t *seen,
                      size_t *n_seen) {
    _cleanup_(buffer_done) Buffer bytes = make(times, n);
    FollowItem item;
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    if (write(pair[1], bytes.data, bytes.size) != (ssize_t)bytes.size)
        abort();
    close(pair[1]);
    r = follow_begin(follow, pair[0], "boot");
    while (r == 0) {
        r = follow_next(follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            break;
        if (item.what == FOLLOW_RECORD && item.record.type == PD_RECORD_SAMPLE &&
            *n_seen < SEEN_MAX)
            seen[(*n_seen)++] = item.stamp.time;
    }
    return r;
}

#define FOLLOW(follow, ...)                                                                        \
    do {                                                                                           \
        static const int64_t _times[] = __VA_ARGS__;                                               \
        CHECK_OK(follow_all(follow, _times, ARRAY_SIZE(_times), seen, &n));                        \
    } while (0)

#define SEEN(...)                                                                                  \
    do {                                                                                           \
        static const uint64_t _wanted[] = __VA_ARGS__;                                             \
        CHECK_EQ(n, ARRAY_SIZE(_wanted));                                                          \
        CHECK_EQ(memcmp(seen, _wanted, sizeof(_wanted)), 0);                                       \
    } while (0)

TEST(watermark_releases_the_samples_before_it_in_order) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    uint64_t seen[SEEN_MAX];
    size_t n = 0;

    CHECK_OK(follow_new(&(FollowOptions){.since_us = 1}, &follow));
    FOLLOW(follow, {30, 10, 20, -30, 50, 40, -60, 70, -71, -72});
    SEEN({10, 20, 30, 40, 50, 70});
    CHECK_EQ(follow_sent_ns(follow), 72);
}

TEST(stream_that_was_cut_off_is_continued_without_a_loss) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    uint64_t seen[SEEN_MAX];
    size_t n = 0;

    CHECK_OK(follow_new(&(FollowOptions){.since_us = 1}, &follow));
    /* One CPU was sent up to 50, of the other one nothing behind the watermark. */
    FOLLOW(follow, {10, 15, -20, 30, 50});
    SEEN({10, 15});
    FOLLOW(follow, {30, 50, 35, 45, -60, 70, -80});
    SEEN({10, 15, 30, 35, 45, 50, 70});
}

TEST(sample_that_was_returned_does_not_come_again) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    uint64_t seen[SEEN_MAX];
    size_t n = 0;

    CHECK_OK(follow_new(&(FollowOptions){.since_us = 1}, &follow));
    FOLLOW(follow, {10, 20, -30});
    FOLLOW(follow, {20, 25, -30, 40, -41});
    SEEN({10, 20, 25, 40});
}

TEST(window_that_was_cut_off_has_what_there_is) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    uint64_t seen[SEEN_MAX];
    size_t n = 0;

    CHECK_OK(follow_new(&(FollowOptions){.since_us = 1, .until_us = 60000000}, &follow));
    FOLLOW(follow, {10, -20, 30, 25});
    SEEN({10, 25, 30});
    CHECK(!follow_is_whole(follow));
}

TEST(parameters_name_the_window_first_and_then_the_watermark) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    uint64_t seen[SEEN_MAX];
    json_t *parameters;
    size_t n = 0;

    CHECK_OK(follow_new(&(FollowOptions){.session = "web", .since_us = 7}, &follow));
    parameters = follow_parameters(follow);
    CHECK_STREQ(json_string_value(json_object_get(parameters, "session")), "web");
    CHECK_EQ(json_integer_value(json_object_get(parameters, "sinceUsec")), 7);
    json_decref(parameters);
    FOLLOW(follow, {10, -255});
    parameters = follow_parameters(follow);
    CHECK(!json_object_get(parameters, "sinceUsec"));
    CHECK_STREQ(json_string_value(json_object_get(parameters, "position")), "ff:boot");
    json_decref(parameters);
}

TEST_MAIN()
