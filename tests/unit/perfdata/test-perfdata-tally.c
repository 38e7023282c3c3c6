/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/tally.h"

#include "perfdata/feature/environment.h"

#include "make-recording.h"
#include "perfdata/writer/emit.h"

/* Counts, times and build ids of records as they pass. */

static int add_all(PdTally *tally, const PdEvents *events, const Buffer *b, bool swap) {
    for (size_t at = 0; at < b->size;) {
        PdRecord record = {.type = load_u32(b->data + at, swap),
                           .misc = load_u16(b->data + at + 4, swap),
                           .swap = swap,
                           .size = load_u16(b->data + at + 6, swap),
                           .data = b->data + at};
        int r = pd_tally_add(tally, events, &record);

        if (r < 0)
            return r;
        at += record.size;
    }
    return 0;
}

static int one_event(PdEvents **ret) {
    PdEvent event = made_event();
    int r = pd_events_new(ret);

    return r < 0 ? r : pd_events_add(*ret, &event.attr, (Bytes){}, made_ids, 2, NULL);
}

TEST(the_time_span_covers_only_samples) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    PdTallyTotals totals;

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    CHECK(!pd_tally_totals(tally).has_times);
    put_mmap(&b, "/bin/a", 1, 5, true);
    put_sample(&b, 30, true);
    put_sample(&b, 10, true);
    put_sample(&b, 20, true);
    CHECK_OK(add_all(tally, events, &b, true));
    totals = pd_tally_totals(tally);
    CHECK_EQ(totals.records, (uint64_t)4);
    CHECK_EQ(totals.samples, (uint64_t)3);
    CHECK_EQ(totals.first_sample_time, (uint64_t)10);
    CHECK_EQ(totals.last_sample_time, (uint64_t)30);
}

TEST(a_build_id_is_kept_once_for_each_object) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer b = {}, body = {};

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    CHECK_OK(pd_environment_new(&env));
    for (unsigned i = 0; i < 3; i++) {
        put_mmap(&b, "/bin/a", 1, i, false);
        put_mmap(&b, "/bin/b", 1, i, false);
        put_mmap(&b, "/bin/a", 2, i, false);
    }
    put_mmap(&b, "[kernel]_text", 3, 0, false);
    CHECK_OK(add_all(tally, events, &b, false));
    CHECK_EQ(pd_tally_totals(tally).n_build_ids, (size_t)4);
    pd_tally_encode_build_ids(tally, &body, false);
    CHECK_OK(buffer_error(&body));
    CHECK_OK(pd_environment_read(env, PD_FEATURE_BUILD_ID, buffer_bytes(&body), false));
    CHECK_EQ(env->n_build_ids, (size_t)4);
    CHECK_STREQ(env->build_ids[0].filename, "/bin/a");
    CHECK_EQ(env->build_ids[0].pid, UINT32_MAX);
    CHECK_EQ(env->build_ids[0].size, 20);
    CHECK_EQ(env->build_ids[2].build_id[0], 2);
    CHECK_STREQ(env->build_ids[3].filename, "[kernel]");
}

TEST(the_number_of_build_ids_is_bounded_and_the_excess_is_reported) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    for (unsigned i = 0; i < 66000; i++) {
        _cleanup_(buffer_done) Buffer b = {};
        char name[16];

        snprintf(name, sizeof(name), "/%u", i);
        put_mmap(&b, name, 1, i, false);
        CHECK_OK(add_all(tally, events, &b, false));
    }
    CHECK_EQ(pd_tally_totals(tally).n_build_ids, (size_t)65536);
    CHECK(pd_tally_totals(tally).build_ids_full);
}

TEST(malformed_records_are_only_counted) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(buffer_done) Buffer b = {};

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    put_header(&b, PD_RECORD_SAMPLE, 0, 16, false);
    buffer_u64(&b, 1, false);
    put_header(&b, PD_RECORD_MMAP2, PD_MISC_MMAP_BUILD_ID, 40, false);
    buffer_zero(&b, 32);
    put_header(&b, PD_RECORD_BUILD_ID, 0, 16, false);
    buffer_zero(&b, 8);
    CHECK_OK(add_all(tally, events, &b, false));
    CHECK_EQ(pd_tally_totals(tally).records, (uint64_t)3);
    CHECK(!pd_tally_totals(tally).has_times);
    CHECK_EQ(pd_tally_totals(tally).n_build_ids, (size_t)0);
}

static void put_bare(Buffer *out, const char *path, uint64_t start) {
    PdTrailer trailer = {.sample_type = made_event().attr.sample_type, .id = made_ids[0]};

    pd_emit_mmap2(out, &trailer, PD_MISC_USER,
                  &(PdMmap){.pid = 1,
                            .tid = 1,
                            .start = start,
                            .length = 0x1000,
                            .filename = {(const uint8_t *)path, strlen(path)}});
}

TEST(files_without_a_build_id_are_counted_once_each) {
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer bare = {}, known = {}, listed = {};
    PdTallyTotals totals;

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    put_bare(&bare, "/opt/bare" PD_NO_BUILD_ID, 0x1000);
    put_bare(&bare, "/opt/bare" PD_NO_BUILD_ID, 0x5000);
    put_bare(&bare, "/opt/other" PD_NO_BUILD_ID, 0x9000);
    put_bare(&bare, "//anon", 0xb000);
    put_mmap(&known, "/opt/known", 1, 5, false);
    CHECK_OK(add_all(tally, events, &bare, false));
    CHECK_OK(add_all(tally, events, &known, false));
    totals = pd_tally_totals(tally);
    CHECK_EQ(totals.n_unidentified, 2U);
    CHECK_EQ(totals.n_build_ids, 1U);
    pd_tally_encode_build_ids(tally, &listed, false);
    CHECK(memmem(listed.data, listed.size, "/opt/known", 10));
    CHECK(!memmem(listed.data, listed.size, "/opt/bare", 9));
}

static void put_known(Buffer *out, const char *path, uint32_t pid, uint64_t start) {
    static const uint8_t id[20] = {7};
    PdTrailer trailer = {.sample_type = made_event().attr.sample_type, .id = made_ids[0]};

    pd_emit_mmap2(out, &trailer, PD_MISC_USER,
                  &(PdMmap){.pid = pid,
                            .tid = pid,
                            .start = start,
                            .length = 0x1000,
                            .build_id = id,
                            .build_id_size = sizeof(id),
                            .filename = {(const uint8_t *)path, strlen(path)}});
}

static size_t unidentified_after(PdTally *tally, const PdEvents *events, Buffer *b) {
    int r = add_all(tally, events, b, false);

    buffer_clear(b);
    return r == 0 ? pd_tally_totals(tally).n_unidentified : SIZE_MAX;
}

TEST(a_mapping_that_gets_its_build_id_later_is_not_unidentified) {
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer b = {};

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    put_bare(&b, "/opt/new" PD_NO_BUILD_ID, 0x1000);
    put_bare(&b, "/opt/new" PD_NO_BUILD_ID, 0x5000);
    CHECK_EQ(unidentified_after(tally, events, &b), 1U);
    put_known(&b, "/opt/new", 1, 0x1000);
    CHECK_EQ(unidentified_after(tally, events, &b), 1U);
    /* Another process may have another build of it. */
    put_known(&b, "/opt/new", 2, 0x5000);
    CHECK_EQ(unidentified_after(tally, events, &b), 1U);
    put_known(&b, "/opt/new", 1, 0x5000);
    CHECK_EQ(unidentified_after(tally, events, &b), 0U);
    put_known(&b, "/opt/new", 1, 0x5000);
    CHECK_EQ(unidentified_after(tally, events, &b), 0U);
    put_bare(&b, "/opt/new" PD_NO_BUILD_ID, 0x1000);
    CHECK_EQ(unidentified_after(tally, events, &b), 1U);
    CHECK_EQ(pd_tally_totals(tally).n_build_ids, 1U);
}

TEST(mappings_without_a_build_id_are_bounded) {
    _cleanup_(pd_tally_freep) PdTally *tally = NULL;
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(buffer_done) Buffer b = {};

    CHECK_OK(one_event(&events));
    CHECK_OK(pd_tally_new(&tally));
    for (uint64_t i = 1; i <= 70000; i++) {
        put_bare(&b, "/opt/new" PD_NO_BUILD_ID, i << 12);
        (void)unidentified_after(tally, events, &b);
    }
    for (uint64_t i = 1; i <= 70000; i++) {
        put_known(&b, "/opt/new", 1, i << 12);
        (void)unidentified_after(tally, events, &b);
    }
    /* Nobody can say whether those beyond the limit were identified. */
    CHECK_EQ(pd_tally_totals(tally).n_unidentified, 1U);
}

TEST_MAIN()
