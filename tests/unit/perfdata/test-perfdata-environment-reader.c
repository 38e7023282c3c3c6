/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"

#include "test.h"

/* A recording of one FINISHED_ROUND and three features: a hostname, NRCPUS and bit 200. */

enum { DATA_AT = 104, TABLE_AT = DATA_AT + 8, BODIES_AT = TABLE_AT + 3 * 16, STRING = 68 };

static void add_section(Buffer *b, uint64_t offset, uint64_t size, bool swap) {
    buffer_u64(b, offset, swap);
    buffer_u64(b, size, swap);
}

static void make_file(Buffer *b, bool swap, uint32_t string_size) {
    buffer_u64(b, PD_MAGIC_2, swap);
    buffer_u64(b, 104, swap);
    buffer_u64(b, 144, swap);
    add_section(b, DATA_AT, 0, swap);
    add_section(b, DATA_AT, 8, swap);
    add_section(b, 0, 0, swap);
    buffer_u64(b, 1 << PD_FEATURE_NRCPUS | 1 << PD_FEATURE_HOSTNAME, swap);
    buffer_zero(b, 16);
    buffer_u64(b, 1ULL << (200 - 192), swap);
    buffer_u32(b, PD_RECORD_FINISHED_ROUND, swap);
    buffer_u16(b, 0, swap);
    buffer_u16(b, 8, swap);
    add_section(b, BODIES_AT, STRING, swap);
    add_section(b, BODIES_AT + STRING, 8, swap);
    add_section(b, BODIES_AT + STRING + 8, 3, swap);
    buffer_u32(b, string_size, swap);
    buffer_append(b, "somewhere", 9);
    buffer_zero(b, 64 - 9);
    buffer_u32(b, 4, swap);
    buffer_u32(b, 3, swap);
    buffer_append(b, "new", 3);
}

static PdEnvironment *read_file(const Buffer *b, unsigned *damaged, PdDamage *why) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;

    if (pd_environment_new(&env) < 0 ||
        pd_reader_open_memory(buffer_bytes(b), NULL, &reader, NULL) < 0 ||
        pd_environment_from_reader(env, reader, damaged, why) < 0)
        return NULL;
    return TAKE_PTR(env);
}

TEST(features_of_a_recording_are_read_in_its_byte_order) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
        _cleanup_(buffer_done) Buffer file = {};
        unsigned damaged = 9;
        PdDamage why = {};

        make_file(&file, swap, 64);
        env = read_file(&file, &damaged, &why);
        CHECK(env);
        CHECK_EQ(damaged, 0u);
        CHECK_EQ(env->nrcpus_available, 4u);
        CHECK_EQ(env->nrcpus_online, 3u);
        CHECK_STREQ(env->hostname, "somewhere");
        CHECK_EQ(env->n_unknown, 1u);
        CHECK_EQ(env->unknown[0].bit, 200u);
        CHECK_EQ(env->unknown[0].size, 3u);
    }
}

TEST(a_damaged_feature_is_counted_and_named_with_its_offset_and_the_others_are_read) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer file = {};
    unsigned damaged = 0;
    PdDamage why = {};

    make_file(&file, false, UINT32_MAX);
    env = read_file(&file, &damaged, &why);
    CHECK(env);
    CHECK_EQ(damaged, 1u);
    CHECK(strstr(why.text, "HOSTNAME"));
    CHECK_EQ(why.offset, (uint64_t)BODIES_AT);
    CHECK(!env->hostname);
    CHECK_EQ(env->nrcpus_available, 4u);
}

TEST(a_section_beyond_the_end_is_counted) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer file = {};
    unsigned damaged = 0;
    PdDamage why = {};

    make_file(&file, false, 64);
    store_u64(file.data + TABLE_AT + 2 * 16, UINT64_MAX - 1, false);
    env = read_file(&file, &damaged, &why);
    CHECK(env);
    CHECK_EQ(damaged, 1u);
    CHECK(strstr(why.text, "200"));
    CHECK_STREQ(env->hostname, "somewhere");
}

TEST_MAIN()
