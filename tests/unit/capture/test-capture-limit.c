/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include "util/macro.h"

#include "test.h"

#define K 1024ULL
#define M (1024ULL * K)

TEST(the_lowest_of_several_rate_limits_holds) {
    CHECK_EQ(limit_frequency(99, 0, 0), 99ULL);
    CHECK_EQ(limit_frequency(999, 500, 100000), 500ULL);
    CHECK_EQ(limit_frequency(999, 5000, 400), 400ULL);
    CHECK_EQ(limit_frequency(999, 5000, 0), 999ULL);
}

TEST(rings_are_halved_until_all_fit) {
    CHECK_EQ(limit_ring_bytes(512 * K, 2, 64 * M), 512 * K);
    CHECK_EQ(limit_ring_bytes(512 * K, 128, 64 * M), 512 * K);
    CHECK_EQ(limit_ring_bytes(512 * K, 129, 64 * M), 256 * K);
    CHECK_EQ(limit_ring_bytes(512 * K, 512, 64 * M), 128 * K);
    CHECK_EQ(limit_ring_bytes(500 * K, 1, 64 * M), 256 * K);
}

TEST(rings_have_at_least_eight_pages) {
    CHECK_EQ(limit_ring_bytes(512 * K, 2, 0), limit_ring_bytes_min());
    CHECK_EQ(limit_ring_bytes(0, 0, 64 * M), limit_ring_bytes_min());
    CHECK_EQ(limit_ring_bytes(UINT64_MAX, 1, UINT64_MAX), 256 * M);
}

TEST(the_size_of_a_ring_is_rounded_up_to_a_power_of_two) {
    CHECK_EQ(limit_ring_bytes_for(0), limit_ring_bytes_min());
    CHECK_EQ(limit_ring_bytes_for(512 * K), 512 * K);
    CHECK_EQ(limit_ring_bytes_for(512 * K + 1), 1024 * K);
    CHECK_EQ(limit_ring_bytes_for(UINT64_MAX), 256 * M);
}

TEST(a_ring_of_512k_holds_two_seconds_at_999_hz) {
    CHECK_EQ(limit_ring_span_ms(512 * K, 999 * 250) / 100, 20ULL);
    CHECK(limit_ring_span_ms(512 * K, 0) > 0);
    CHECK_EQ(limit_ring_span_ms(8192 * K, 99 * 16634ULL) / 1000, 5ULL);
}

TEST(rate_limit_of_the_kernel_is_read) {
    CHECK(limit_sample_rate() > 0);
}

TEST(descriptors_are_checked_before_events_are_opened) {
    struct rlimit limit, small;
    uint64_t most = 0;

    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    small = (struct rlimit){.rlim_cur = 128, .rlim_max = limit.rlim_max};
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &small));
    CHECK_OK(limit_descriptors(10, &most));
    CHECK_OK(limit_descriptors(200, &most));
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &small));
    CHECK(small.rlim_cur >= 264);
    CHECK_EQ(limit_descriptors(limit.rlim_max, &most), -EMFILE);
    CHECK_EQ(most, (uint64_t)limit.rlim_max);
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

TEST(a_failure_is_returned_with_its_errno) {
    CHECK_EQ(limit_log_open_failure(-EACCES, "default", "cycles", 0), -EACCES);
    CHECK_EQ(limit_log_open_failure(-EXDEV, NULL, "dummy", 3), -EXDEV);
}

TEST_MAIN()
