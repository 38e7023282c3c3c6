/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/queue.h"

#include <poll.h>

#include "test.h"
#include "util/clock.h"
#include "util/macro.h"

/* The order of requests and of results, and what happens when there is no room. */

static ScanImage *image_of(uint64_t number, size_t size) {
    ScanImage *image = calloc(1, sizeof(*image) + size);

    image->work = SCAN_IMAGE;
    image->image = number;
    image->size = sizeof(*image) + size;
    return image;
}

static ScanImage *table_of(uint64_t number) {
    ScanImage *image = image_of(number, 0);

    image->work = SCAN_TABLE;
    return image;
}

static ScanResult *result_of(uint64_t number, size_t size) {
    ScanResult *result = calloc(1, sizeof(*result));

    result->kind = SCAN_IS_BUILD_ID;
    result->number = number;
    result->size = size;
    return result;
}

static bool is_readable(const ScanQueue *queue) {
    struct pollfd poll_fd = {.fd = scan_queue_fd(queue), .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

TEST(the_most_urgent_work_comes_first_and_a_pass_continues_in_between) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    ScanRequest next;

    CHECK_OK(scan_queue_new(&queue));
    scan_queue_ask(queue, SCAN_PASS);
    CHECK_OK(scan_queue_ask_image(queue, table_of(8)));
    CHECK_OK(scan_queue_ask_image(queue, image_of(7, 0)));
    CHECK_OK(scan_queue_ask_process(queue, 42));
    CHECK_OK(scan_queue_ask_process(queue, 43));
    scan_queue_ask(queue, SCAN_CGROUPS);
    scan_queue_ask(queue, SCAN_KERNEL);
    scan_queue_ask(queue, SCAN_KERNEL);
    CHECK_EQ(scan_queue_next(queue, false).work, SCAN_KERNEL);
    CHECK_EQ(scan_queue_next(queue, false).work, SCAN_CGROUPS);
    CHECK_EQ(scan_queue_next(queue, false).pid, 42U);
    CHECK_EQ(scan_queue_next(queue, true).pid, 43U);
    next = scan_queue_next(queue, false);
    CHECK_EQ(next.work, SCAN_IMAGE);
    CHECK_EQ(next.image->image, 7U);
    free(next.image);
    next = scan_queue_next(queue, false);
    CHECK_EQ(next.work, SCAN_PASS);
    CHECK(next.begins);
    next = scan_queue_next(queue, true);
    CHECK_EQ(next.work, SCAN_PASS);
    CHECK(!next.begins);
    /* Names do not wait for tables. */
    next = scan_queue_next(queue, false);
    CHECK_EQ(next.work, SCAN_TABLE);
    CHECK_EQ(next.image->image, 8U);
    free(next.image);
}

TEST(a_pass_requested_during_a_pass_begins_after_it) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;

    CHECK_OK(scan_queue_new(&queue));
    scan_queue_ask(queue, SCAN_PASS);
    CHECK(scan_queue_next(queue, false).begins);
    scan_queue_ask(queue, SCAN_PASS);
    CHECK(!scan_queue_next(queue, true).begins);
    CHECK(!scan_queue_next(queue, true).begins);
    CHECK(scan_queue_next(queue, false).begins);
    CHECK(!scan_queue_next(queue, true).begins);
}

TEST(a_request_beyond_the_limits_is_refused_with_a_reason) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    _cleanup_free_ ScanImage *refused = image_of(1, 0);
    size_t n = 0;

    CHECK_OK(scan_queue_new(&queue));
    for (uint32_t i = 0; i < SCAN_PROCESSES_MAX; i++)
        CHECK_OK(scan_queue_ask_process(queue, i + 1));
    CHECK_EQ(scan_queue_ask_process(queue, 1), -ENOBUFS);
    CHECK_EQ(scan_queue_next(queue, false).pid, 1U);
    CHECK_OK(scan_queue_ask_process(queue, 77));
    for (uint32_t i = 1; i < SCAN_PROCESSES_MAX; i++)
        CHECK_EQ(scan_queue_next(queue, false).pid, i + 1);
    CHECK_EQ(scan_queue_next(queue, false).pid, 77U);

    for (size_t i = 0; i < SCAN_IMAGES_MAX; i++)
        CHECK_OK(scan_queue_ask_image(queue, image_of(i, 0)));
    CHECK_EQ(scan_queue_ask_image(queue, refused), -ENOBUFS);
    for (size_t i = 0; i < SCAN_IMAGES_MAX; i++) {
        _cleanup_free_ ScanImage *image = scan_queue_next(queue, false).image;

        CHECK_EQ(image->image, i);
    }
    /* Long paths use the room up before the number does. */
    for (; n < SCAN_IMAGES_MAX; n++) {
        ScanImage *image = image_of(n, 4096);

        if (scan_queue_ask_image(queue, image) == 0)
            continue;
        free(image);
        break;
    }
    CHECK(n > 900 && n < 1100);
}

TEST(results_are_announced_until_the_last_is_taken) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;

    CHECK_OK(scan_queue_new(&queue));
    CHECK(!is_readable(queue));
    CHECK(scan_queue_take(queue, 1) == NULL);
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 5; i++)
            CHECK_OK(scan_queue_put(queue, result_of(i, 10)));
        for (uint64_t i = 0; i < 5; i++) {
            _cleanup_(scan_result_freep) ScanResult *result = NULL;

            CHECK(is_readable(queue));
            result = scan_queue_take(queue, 1);
            CHECK_EQ(result->number, i);
        }
        CHECK(!is_readable(queue));
    }
}

TEST(processes_are_announced_together) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    ScanResult *chain;

    CHECK_OK(scan_queue_new(&queue));
    for (uint64_t i = 0; i < SCAN_ANNOUNCED; i++) {
        ScanResult *result = result_of(i, 10);

        CHECK(!is_readable(queue));
        result->kind = SCAN_IS_PROCESS;
        CHECK_OK(scan_queue_put(queue, result));
    }
    CHECK(is_readable(queue));
    chain = scan_queue_take(queue, SCAN_ANNOUNCED - 1);
    for (uint64_t i = 0; i < SCAN_ANNOUNCED - 1; i++) {
        ScanResult *result = chain;

        CHECK(result != NULL);
        CHECK_EQ(result->number, i);
        chain = result->next;
        scan_result_free(result);
    }
    CHECK(chain == NULL);
    CHECK(is_readable(queue));
    chain = scan_queue_take(queue, 100);
    CHECK_EQ(chain->number, (uint64_t)SCAN_ANNOUNCED - 1);
    CHECK(chain->next == NULL);
    scan_result_free(chain);
    CHECK(!is_readable(queue));
}

TEST(a_single_result_may_have_any_size) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;

    CHECK_OK(scan_queue_new(&queue));
    CHECK_OK(scan_queue_put(queue, result_of(1, 100 << 20)));
    scan_result_free(scan_queue_take(queue, 1));
    CHECK_OK(scan_queue_put(queue, result_of(2, SCAN_RESULTS_MAX_BYTES)));
}

TEST(a_stop_ends_every_wait) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;

    CHECK_OK(scan_queue_new(&queue));
    for (uint64_t i = 0; i < SCAN_RESULTS_MAX; i++)
        CHECK_OK(scan_queue_put(queue, result_of(i, 10)));
    scan_queue_ask(queue, SCAN_KERNEL);
    scan_queue_stop(queue);
    CHECK_EQ(scan_queue_put(queue, result_of(0, 10)), -ECANCELED);
    CHECK_EQ(scan_queue_next(queue, false).work, SCAN_STOP);
}

TEST(names_of_samples_do_not_wait_for_symbols_that_are_kept) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    ScanImage *symbols = image_of(1, 0), *map = image_of(2, 0);
    ScanRequest next;

    symbols->work = SCAN_SYMBOLS;
    map->work = SCAN_CODE_MAP;
    CHECK_OK(scan_queue_new(&queue));
    CHECK_OK(scan_queue_ask_image(queue, symbols));
    CHECK_OK(scan_queue_ask_image(queue, map));
    CHECK_OK(scan_queue_ask_image(queue, table_of(3)));
    scan_queue_rest(queue, SCAN_SYMBOLS, clock_monotonic_ns() + NS_PER_SECOND / 5);
    CHECK_OK(scan_queue_ask_image(queue, image_of(4, 0)));
    for (unsigned i = 0; i < 4; i++) {
        static const ScanWork order[] = {SCAN_IMAGE, SCAN_TABLE, SCAN_CODE_MAP, SCAN_SYMBOLS};

        next = scan_queue_next(queue, false);
        CHECK_EQ(next.work, order[i]);
        scan_image_free(next.image);
    }
}

TEST(delayed_images_hold_up_no_other_work_and_come_back) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    uint64_t until_ns = clock_monotonic_ns() + NS_PER_SECOND / 5;
    ScanRequest next;

    CHECK_OK(scan_queue_new(&queue));
    CHECK_OK(scan_queue_ask_image(queue, image_of(7, 0)));
    scan_queue_rest(queue, SCAN_IMAGE, until_ns);
    CHECK_OK(scan_queue_ask_process(queue, 42));
    CHECK_EQ(scan_queue_next(queue, false).pid, 42U);
    /* In a pass the next process is read meanwhile. */
    CHECK_EQ(scan_queue_next(queue, true).work, SCAN_PASS);
    next = scan_queue_next(queue, false);
    CHECK_EQ(next.work, SCAN_IMAGE);
    CHECK(clock_monotonic_ns() >= until_ns);
    free(next.image);
}

TEST(images_that_come_last_are_read_when_there_is_nothing_else) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    ScanRequest next;

    CHECK_OK(scan_queue_new(&queue));
    scan_queue_ask(queue, SCAN_PASS);
    CHECK_OK(scan_queue_ask_image(queue, image_of(7, 0)));
    CHECK_OK(scan_queue_ask_image(queue, table_of(8)));
    scan_queue_put_last(queue, SCAN_IMAGE, clock_monotonic_ns() + 60 * NS_PER_SECOND);
    CHECK_EQ(scan_queue_next(queue, false).work, SCAN_PASS);
    CHECK_EQ(scan_queue_next(queue, true).work, SCAN_PASS);
    for (unsigned i = 0; i < 2; i++) {
        static const ScanWork order[] = {SCAN_TABLE, SCAN_IMAGE};

        next = scan_queue_next(queue, false);
        CHECK_EQ(next.work, order[i]);
        scan_image_free(next.image);
    }
    /* Before that, and afterwards, a pass waits for images. */
    CHECK_OK(scan_queue_ask_image(queue, image_of(9, 0)));
    scan_queue_put_last(queue, SCAN_IMAGE, clock_monotonic_ns());
    next = scan_queue_next(queue, true);
    CHECK_EQ(next.work, SCAN_IMAGE);
    scan_image_free(next.image);
}

TEST(build_ids_do_not_wait_for_expensive_tables) {
    _cleanup_(scan_queue_freep) ScanQueue *queue = NULL;
    ScanRequest next;

    CHECK_OK(scan_queue_new(&queue));
    CHECK_OK(scan_queue_ask_image(queue, table_of(1)));
    scan_queue_rest(queue, SCAN_TABLE, clock_monotonic_ns() + NS_PER_SECOND / 5);
    CHECK_OK(scan_queue_ask_image(queue, image_of(2, 0)));
    for (unsigned i = 0; i < 2; i++) {
        static const ScanWork order[] = {SCAN_IMAGE, SCAN_TABLE};

        next = scan_queue_next(queue, false);
        CHECK_EQ(next.work, order[i]);
        scan_image_free(next.image);
    }
    /* The other way round, too. */
    CHECK_OK(scan_queue_ask_image(queue, image_of(3, 0)));
    scan_queue_rest(queue, SCAN_IMAGE, clock_monotonic_ns() + 60 * NS_PER_SECOND);
    CHECK_OK(scan_queue_ask_image(queue, table_of(4)));
    next = scan_queue_next(queue, false);
    CHECK_EQ(next.work, SCAN_TABLE);
    scan_image_free(next.image);
}

TEST_MAIN()
