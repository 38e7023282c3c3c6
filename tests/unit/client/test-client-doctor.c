/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include "test.h"

/* Verdicts of checks that ask the host for what no made-up folder can tell. */

static Doctor doctor;

static const Diagnosis *said(void) {
    return &doctor.items[doctor.n - 1];
}

static void fresh(void) {
    doctor_done(&doctor);
    doctor = (Doctor){.root = "", .check = "test"};
}

TEST(an_unsynchronised_clock_is_mentioned) {
    fresh();
    doctor_judge_clock(&doctor, true);
    CHECK_EQ(said()->health, HEALTH_OK);
    doctor_judge_clock(&doctor, false);
    CHECK_EQ(said()->health, HEALTH_WARN);
    CHECK(said()->remedy);
}

TEST(free_space_is_compared_with_the_needs_of_recordings) {
    static const struct {
        uint64_t free_bytes, all_bytes;
        bool read_only;
        Health health;
    } rows[] = {
        {50ULL << 30, 100ULL << 30, false, HEALTH_OK},
        {15ULL << 30, 100ULL << 30, false, HEALTH_OK},
        {14ULL << 30, 100ULL << 30, false, HEALTH_WARN},
        {200 << 20, 100ULL << 30, false, HEALTH_FAIL},
        {50ULL << 30, 100ULL << 30, true, HEALTH_FAIL},
        {0, 0, false, HEALTH_FAIL},
        {1ULL << 62, 1ULL << 63, false, HEALTH_OK},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fresh();
        doctor_judge_disk(&doctor, "/var/lib/profd", rows[i].free_bytes, rows[i].all_bytes,
                          rows[i].read_only);
        CHECK_EQ(said()->health, rows[i].health);
        CHECK(said()->health == HEALTH_OK || said()->remedy);
    }
}

TEST(perf_is_checked_for_its_version_and_for_zstd) {
    static const struct {
        const char *version, *options;
        Health health;
    } rows[] = {
        {"perf version 6.1.192\n", "  zstd: [ on  ]  # HAVE_ZSTD_SUPPORT\n", HEALTH_OK},
        {"perf version 6.12.6", "", HEALTH_OK},
        {"perf version 7.3.rc2.g0123", "", HEALTH_OK},
        {"perf version 6.0.12", "", HEALTH_WARN},
        {"perf version 5.10.234", "", HEALTH_WARN},
        {"perf version 6.1.192", "  zstd: [ OFF ]  # HAVE_ZSTD_SUPPORT", HEALTH_FAIL},
        {NULL, NULL, HEALTH_WARN},
        {"", NULL, HEALTH_WARN},
        {"WARNING: perf not found for kernel 6.18", "", HEALTH_WARN},
        {"\x1b[2J", "", HEALTH_WARN},
        {"perf version 99999999999999999999.1", "", HEALTH_OK},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fresh();
        doctor_judge_perf(&doctor, rows[i].version, rows[i].options);
        CHECK_EQ(said()->health, rows[i].health);
        CHECK(!strchr(said()->text, '\x1b'));
    }
}

TEST(escaped_text_is_never_cut_inside_an_escape) {
    char room[10];

    CHECK_STREQ(doctor_escape("a\x1b\n\xff", room, sizeof(room)), "a\\x1b\\x0a");
    CHECK_STREQ(doctor_escape("0123456789abc", room, sizeof(room)), "012345678");
    CHECK_STREQ(doctor_escape("", room, sizeof(room)), "");
}

TEST_MAIN()
