/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"

#include "make-feature.h"
#include "test.h"

/* Features as they are read and written: both byte orders, older revisions, hostile bodies. */

static bool same(const Buffer *a, const Buffer *b) {
    return bytes_equal(buffer_bytes(a), buffer_bytes(b));
}

static void check_round_trip(bool swap) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(swap);

    CHECK(env);
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer body = {}, other = {}, written = {}, turned = {};

        if (!make_body(bit, &body, swap)) {
            CHECK(!env->has[bit]);
            continue;
        }
        (void)make_body(bit, &other, !swap);
        CHECK(env->has[bit]);
        CHECK_OK(pd_environment_write(env, bit, &written, swap));
        CHECK(same(&written, &body));
        CHECK_OK(pd_environment_write(env, bit, &turned, !swap));
        CHECK(same(&turned, &other));
    }
}

TEST(every_feature_is_written_as_read_in_both_byte_orders) {
    check_round_trip(false);
    check_round_trip(true);
}

TEST(every_feature_of_the_format_has_a_name) {
    for (unsigned bit = 1; bit <= PD_FEATURE_CLN_SIZE; bit++)
        CHECK(pd_feature_name(bit));
    CHECK_STREQ(pd_feature_name(3), "HOSTNAME");
    CHECK(!pd_feature_name(0));
    CHECK(!pd_feature_name(60));
    CHECK(!pd_feature_name(1000));
}

TEST(a_missing_feature_is_not_written) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(pd_environment_new(&env));
    for (unsigned bit = 0; bit < PD_FEATURE_BITS + 8; bit++)
        CHECK_EQ(pd_environment_write(env, bit, &out, false), -ENOENT);
    CHECK_EQ(pd_environment_read(env, 0, (Bytes){}, false), -EINVAL);
    CHECK_EQ(pd_environment_read(env, PD_FEATURE_BITS, (Bytes){}, false), -EINVAL);
    CHECK_EQ(out.size, 0u);
}

/* The cut body is in memory of exactly its size, so that a sanitizer detects the first byte beyond
 * it. */
static void check_cut(PdEnvironment *env, unsigned bit, const Buffer *body, size_t n, bool swap) {
    _cleanup_free_ uint8_t *exact = malloc(n > 0 ? n : 1);
    _cleanup_(buffer_done) Buffer written = {};
    int r;

    CHECK(exact);
    if (n > 0)
        memcpy(exact, body->data, n);
    r = pd_environment_read(env, bit, (Bytes){.data = exact, .size = n}, swap);
    CHECK(r == 0 || r == -EBADMSG);
    CHECK_EQ(env->has[bit], r == 0);
    CHECK_OK(pd_environment_write(env, bit, &written, swap));
    /* Content that cannot be understood is kept; the rest of a string is filled up again. */
    CHECK(r == 0 || bytes_equal(buffer_bytes(&written), (Bytes){.data = exact, .size = n}));
}

TEST(a_truncated_body_is_an_older_revision_or_is_refused_and_kept) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(swap);

        CHECK(env);
        for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
            _cleanup_(buffer_done) Buffer body = {};

            if (!make_body(bit, &body, swap))
                continue;
            for (size_t n = 0; n <= body.size && !test_failed; n++)
                check_cut(env, bit, &body, n, swap);
        }
    }
}

static void check_hostile(PdEnvironment *env, unsigned bit, uint32_t v) {
    _cleanup_(buffer_done) Buffer body = {};

    if (!make_body(bit, &body, false))
        return;
    for (size_t at = 0; at + 4 <= body.size; at += 4) {
        uint32_t was = load_u32(body.data + at, false);
        _cleanup_(buffer_done) Buffer out = {};
        Fields fields = fields_to(&out, FIELDS_JSON);
        int r;

        store_u32(body.data + at, v, false);
        r = read_buffer(env, bit, &body, false);
        CHECK(r == 0 || r == -EBADMSG);
        CHECK_OK(pd_environment_write(env, bit, &out, false));
        CHECK_OK(pd_environment_write(env, bit, &out, true));
        pd_environment_print(env, &out);
        pd_environment_describe(env, &fields);
        CHECK_OK(buffer_error(&out));
        store_u32(body.data + at, was, false);
    }
}

TEST(hostile_numbers_in_a_body_are_bounded) {
    static const uint32_t hostile[] = {UINT32_MAX, INT32_MAX, 1u << 31, 1u << 24, 0xffff, 3, 0};
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);

    CHECK(env);
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++)
        for (size_t i = 0; i < ARRAY_SIZE(hostile) && !test_failed; i++)
            check_hostile(env, bit, hostile[i]);
}

TEST(a_body_of_empty_strings_is_bounded) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    uint32_t n = 4u << 20;

    CHECK_OK(pd_environment_new(&env));
    buffer_u32(&body, n, false);
    buffer_zero(&body, (size_t)n * 4);
    CHECK_EQ(read_buffer(env, PD_FEATURE_CMDLINE, &body, false), -EBADMSG);
    CHECK_EQ(env->cmdline.n, 0u);
}

TEST(members_have_the_values_of_the_bodies) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(true);

    CHECK(env);
    CHECK_EQ(env->nrcpus_available, 2u);
    CHECK_EQ(env->nrcpus_online, 1u);
    CHECK_EQ(env->cmdline.n, 3u);
    CHECK_STREQ(env->cmdline.items[1], "");
    CHECK_EQ(env->n_event_descs, 2u);
    CHECK_STREQ(env->event_descs[0].name, "cpu-clock");
    CHECK_EQ(env->event_descs[0].n_ids, 2u);
    CHECK_EQ(env->event_descs[0].ids[1], 101u);
    CHECK_EQ(env->event_descs[1].attr.config, 9u);
    CHECK_EQ(env->n_build_ids, 2u);
    CHECK_EQ(env->build_ids[0].size, 20);
    CHECK_EQ(env->build_ids[1].size, 16);
    CHECK_STREQ(env->build_ids[1].filename, "/usr/lib/libc.so.6");
    CHECK(env->has_dies);
    CHECK_EQ(env->n_cpu_places, 2u);
    CHECK_EQ(env->cpu_places[1].core, 1u);
    CHECK_EQ(env->cpu_places[1].die, 8u);
    CHECK_EQ(env->bpf_progs[0].id, 77u);
    CHECK_EQ(env->bpf_progs[0].type, 5u);
    CHECK_EQ(env->bpf_progs[0].jited_len, 11u);
    CHECK_STREQ(env->bpf_progs[0].name, "my_prog");
    CHECK_EQ(env->n_auxtrace, 4u);
    CHECK_EQ(env->auxtrace[2], 0x2000u);
    CHECK_EQ(env->n_cpu_domains, 2u);
    CHECK_STREQ(env->cpu_domains[0].domains[0].name, "MC");
    CHECK_EQ(env->cpu_domains[1].n, 0u);
    CHECK_EQ(env->e_machine, 62u);
    CHECK_STREQ(env->meta_info.items[1], "monotonic");
    CHECK_STREQ(env->pmu_caps[0].pmu, "cpu_atom");
    CHECK_STREQ(env->pmu_caps[0].values.items[0], "32");
}

TEST(older_cpu_topologies_are_read_and_written_unchanged) {
    for (unsigned revision = 1; revision <= 2; revision++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);
        _cleanup_(buffer_done) Buffer body = {}, written = {};

        CHECK(env);
        add_topology(&body, false, revision);
        CHECK_OK(read_buffer(env, PD_FEATURE_CPU_TOPOLOGY, &body, false));
        CHECK(!env->has_dies);
        CHECK_EQ(env->n_cpu_places, revision == 1 ? 0u : 2u);
        CHECK_EQ(env->die_siblings.n, 0u);
        CHECK_OK(pd_environment_write(env, PD_FEATURE_CPU_TOPOLOGY, &written, false));
        CHECK(same(&written, &body));
    }
}

TEST(a_cpu_topology_without_the_number_of_cpus_is_kept_as_bytes) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};

    CHECK_OK(pd_environment_new(&env));
    add_topology(&body, false, 3);
    CHECK_EQ(read_buffer(env, PD_FEATURE_CPU_TOPOLOGY, &body, false), -EBADMSG);
    CHECK_EQ(env->n_unknown, 1u);
    CHECK_EQ(env->unknown[0].size, body.size);
}

TEST(padding_and_additions_of_newer_writers_are_kept) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);
    _cleanup_(buffer_done) Buffer body = {}, written = {};

    CHECK(env);
    CHECK(make_body(PD_FEATURE_NRCPUS, &body, false));
    buffer_append(&body, "more", 4);
    CHECK_OK(read_buffer(env, PD_FEATURE_NRCPUS, &body, false));
    CHECK_EQ(env->nrcpus_online, 1u);
    CHECK_OK(pd_environment_write(env, PD_FEATURE_NRCPUS, &written, false));
    CHECK(same(&written, &body));
}

TEST(unknown_bits_are_kept_and_written_back) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer written = {};
    Bytes body = {.data = (const uint8_t *)"whatever", .size = 8};

    CHECK_OK(pd_environment_new(&env));
    CHECK_OK(pd_environment_read(env, 200, body, false));
    CHECK_OK(pd_environment_read(env, 200, body, true));
    CHECK_EQ(env->n_unknown, 1u);
    CHECK(!env->has[200]);
    CHECK_OK(pd_environment_write(env, 200, &written, true));
    CHECK(bytes_equal(buffer_bytes(&written), body));
}

TEST(a_damaged_feature_clears_its_old_value) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);

    CHECK(env);
    CHECK_EQ(pd_environment_read(env, PD_FEATURE_HOSTNAME,
                                 (Bytes){.data = (const uint8_t *)"abc", .size = 3}, false),
             -EBADMSG);
    CHECK(!env->hostname);
    CHECK(!env->has[PD_FEATURE_HOSTNAME]);
}

TEST(a_string_without_a_nul_ends_with_its_bytes) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};

    CHECK_OK(pd_environment_new(&env));
    buffer_u32(&body, 4, false);
    buffer_append(&body, "name", 4);
    CHECK_OK(read_buffer(env, PD_FEATURE_HOSTNAME, &body, false));
    CHECK_STREQ(env->hostname, "name");
}

TEST(old_build_ids_without_a_pid_are_read) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    uint8_t id[24] = {1, 2, 3};

    CHECK_OK(pd_environment_new(&env));
    for (unsigned i = 0; i < 2; i++) {
        const char *name = i == 0 ? "[kernel.kallsyms]" : "/bin/sh";

        buffer_u32(&body, 0, false);
        buffer_u16(&body, i == 0 ? PD_MISC_KERNEL : PD_MISC_GUEST_USER, false);
        buffer_u16(&body, 32 + 64, false);
        buffer_append(&body, id, sizeof(id));
        buffer_append(&body, name, strlen(name));
        buffer_zero(&body, 64 - strlen(name));
    }
    CHECK_OK(read_buffer(env, PD_FEATURE_BUILD_ID, &body, false));
    CHECK_EQ(env->n_build_ids, 2u);
    CHECK_STREQ(env->build_ids[0].filename, "[kernel.kallsyms]");
    CHECK_EQ(env->build_ids[0].pid, UINT32_MAX);
    CHECK_EQ(env->build_ids[0].build_id[2], 3);
    CHECK_STREQ(env->build_ids[1].filename, "/bin/sh");
    CHECK_EQ(env->build_ids[1].pid, 0u);
}

TEST(an_auxtrace_index_without_a_count_is_read) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {}, written = {};

    CHECK_OK(pd_environment_new(&env));
    U64S(&body, false, 0x4000, 32);
    CHECK_OK(read_buffer(env, PD_FEATURE_AUXTRACE, &body, false));
    CHECK_EQ(env->n_auxtrace, 2u);
    CHECK_EQ(env->auxtrace[0], 0x4000u);
    CHECK_OK(pd_environment_write(env, PD_FEATURE_AUXTRACE, &written, false));
    CHECK(same(&written, &body));
}

TEST_MAIN()
