/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"

#include "test.h"
#include "util/text.h"

/*
 * The bodies are written number by number, as perf lays them out, so that the codec is compared
 * with the format and not with itself.
 */

enum { CPUS = 2 };

static void add_string(Buffer *b, const char *s, bool swap) {
    size_t n = strlen(s) + 1, padded = (n + 63) / 64 * 64;

    buffer_u32(b, (uint32_t)padded, swap);
    buffer_append(b, s, n);
    buffer_zero(b, padded - n);
}

static void add_u32s(Buffer *b, bool swap, size_t n, const uint32_t *v) {
    for (size_t i = 0; i < n; i++)
        buffer_u32(b, v[i], swap);
}

static void add_u64s(Buffer *b, bool swap, size_t n, const uint64_t *v) {
    for (size_t i = 0; i < n; i++)
        buffer_u64(b, v[i], swap);
}

#define U32S(b, swap, ...)                                                                         \
    add_u32s(b, swap, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (const uint32_t[]){__VA_ARGS__})
#define U64S(b, swap, ...)                                                                         \
    add_u64s(b, swap, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__})

static void add_build_id(Buffer *b, bool swap, uint16_t misc, uint32_t pid, unsigned size,
                         const char *name, size_t room) {
    buffer_u32(b, 0, swap);
    buffer_u16(b, misc, swap);
    buffer_u16(b, (uint16_t)(36 + room), swap);
    buffer_u32(b, pid, swap);
    for (unsigned i = 0; i < 20; i++)
        buffer_append(b, &(uint8_t){i < size ? (uint8_t)(0xa0 + i) : 0}, 1);
    buffer_append(b, &(uint8_t){misc & 0x8000 ? (uint8_t)size : 0}, 1);
    buffer_zero(b, 3);
    buffer_append(b, name, strlen(name));
    buffer_zero(b, room - strlen(name));
}

static void add_event(Buffer *b, bool swap, const char *name, uint64_t config, size_t n_ids) {
    PdAttr attr = {.type = 1,
                   .config = config,
                   .sample_period = 99,
                   .sample_type = PD_SAMPLE_IP | PD_SAMPLE_TID,
                   .read_format = PD_FORMAT_ID,
                   .flags = PD_ATTR_DISABLED | PD_ATTR_FREQ | 2ULL << PD_ATTR_PRECISE_IP_SHIFT};

    pd_attr_encode(&attr, 136, b, swap);
    buffer_u32(b, (uint32_t)n_ids, swap);
    add_string(b, name, swap);
    for (uint64_t i = 0; i < n_ids; i++)
        buffer_u64(b, 100 + i, swap);
}

static void add_topology(Buffer *b, bool swap, unsigned revision) {
    U32S(b, swap, 1);
    add_string(b, "0-1", swap);
    U32S(b, swap, 2);
    add_string(b, "0", swap);
    add_string(b, "1", swap);
    if (revision == 1)
        return;
    U32S(b, swap, 0, 0, 1, 0);
    if (revision == 2)
        return;
    U32S(b, swap, 1);
    add_string(b, "0-1", swap);
    U32S(b, swap, 7, 8);
}

static void make_bpf_prog(Buffer *b, bool swap) {
    U32S(b, swap, 1, 232, 8);
    U64S(b, swap, 1);
    U32S(b, swap, 5, 77);
    buffer_append(b, "tagbytes", 8);
    U32S(b, swap, 11, 22);
    U64S(b, swap, 0, 0, 3);
    U32S(b, swap, 4, 5);
    U64S(b, swap, 0);
    buffer_append(b, "my_prog\0\0\0\0\0\0\0\0", 16);
    U32S(b, swap, 0, 1);
    U64S(b, swap, 6, 7);
    U32S(b, swap, 0, 0);
    U64S(b, swap, 0, 0);
    U32S(b, swap, 9, 8);
    U64S(b, swap, 0);
    U32S(b, swap, 0, 0);
    U64S(b, swap, 0, 0);
    U32S(b, swap, 0, 0, 0, 0);
    U64S(b, swap, 0, 1, 2, 3);
    U32S(b, swap, 1, 2, 3, 0);
    buffer_append(b, "codebyte", 8);
}

static void make_tracing_data(Buffer *b, _unused_ bool swap) {
    buffer_append(b, "\x17\x08\x44tracing", 10);
}

static void make_build_id(Buffer *b, bool swap) {
    add_build_id(b, swap, 1, UINT32_MAX, 20, "[kernel.kallsyms]", 64);
    add_build_id(b, swap, 0x8002, UINT32_MAX, 16, "/usr/lib/libc.so.6", 24);
}

static void make_string(Buffer *b, bool swap) {
    add_string(b, "some \xff words", swap);
}

static void make_nrcpus(Buffer *b, bool swap) {
    U32S(b, swap, CPUS, 1);
}

static void make_u64(Buffer *b, bool swap) {
    U64S(b, swap, 0x123456789aULL);
}

static void make_cmdline(Buffer *b, bool swap) {
    U32S(b, swap, 3);
    add_string(b, "perf", swap);
    add_string(b, "", swap);
    add_string(b, "it's a word that is longer than the sixty-four bytes of one piece of it", swap);
}

static void make_event_desc(Buffer *b, bool swap) {
    U32S(b, swap, 2, 136);
    add_event(b, swap, "cpu-clock", 0, 2);
    add_event(b, swap, "dummy:HG", 9, 0);
}

static void make_newest_topology(Buffer *b, bool swap) {
    add_topology(b, swap, 3);
}

static void make_numa_topology(Buffer *b, bool swap) {
    U32S(b, swap, 1, 0);
    U64S(b, swap, 4000, 3000);
    add_string(b, "0-1", swap);
}

static void make_pmu_mappings(Buffer *b, bool swap) {
    U32S(b, swap, 2, 1);
    add_string(b, "software", swap);
    U32S(b, swap, 8);
    add_string(b, "msr", swap);
}

static void make_group_desc(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "{anon_group}", swap);
    U32S(b, swap, 0, 2);
}

static void make_auxtrace(Buffer *b, bool swap) {
    U64S(b, swap, 2, 0x1000, 64, 0x2000, 128);
}

static void make_cache(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1, 1, 64, 512, 8);
    add_string(b, "Data", swap);
    add_string(b, "32K", swap);
    add_string(b, "0", swap);
}

static void make_sample_time(Buffer *b, bool swap) {
    U64S(b, swap, 59122544999ULL, 59239681001ULL);
}

static void make_mem_topology(Buffer *b, bool swap) {
    U64S(b, swap, 1, 0x8000000, 1, 0, 70, 70, 0xff00000000000003ULL, 0x21);
}

static void make_bpf_btf(Buffer *b, bool swap) {
    U32S(b, swap, 1, 9, 4);
    buffer_append(b, "btf!", 4);
}

static void make_compressed(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1, 3, 7, 528384);
}

static void make_cpu_pmu_caps(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "max_precise", swap);
    add_string(b, "0", swap);
}

static void make_clock_data(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1);
    U64S(b, swap, 1700000000123456789ULL, 5000000007ULL);
}

static void make_hybrid_topology(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "cpu_core", swap);
    add_string(b, "0-15", swap);
}

static void make_pmu_caps(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1);
    add_string(b, "branches", swap);
    add_string(b, "32", swap);
    add_string(b, "cpu_atom", swap);
}

static void make_cpu_domain_info(Buffer *b, bool swap) {
    U32S(b, swap, 17, 1, 0, 1, 0);
    add_string(b, "MC", swap);
    add_string(b, "3", swap);
    add_string(b, "0-1", swap);
    U32S(b, swap, 1, 0);
}

static void make_e_machine(Buffer *b, bool swap) {
    U32S(b, swap, 62, 5);
}

static void make_cln_size(Buffer *b, bool swap) {
    U32S(b, swap, 64);
}

static void make_meta_info(Buffer *b, _unused_ bool swap) {
    buffer_append(b, "clockid\0monotonic", 18);
}

static void make_nothing(_unused_ Buffer *b, _unused_ bool swap) {
}

/* clang-format off */
static const struct {
    unsigned bit;
    void (*make)(Buffer *b, bool swap);
} bodies[] = {
    {PD_FEATURE_TRACING_DATA,         make_tracing_data},
    {PD_FEATURE_BUILD_ID,             make_build_id},
    {PD_FEATURE_HOSTNAME,             make_string},
    {PD_FEATURE_OSRELEASE,            make_string},
    {PD_FEATURE_VERSION,              make_string},
    {PD_FEATURE_ARCH,                 make_string},
    {PD_FEATURE_NRCPUS,               make_nrcpus},
    {PD_FEATURE_CPUDESC,              make_string},
    {PD_FEATURE_CPUID,                make_string},
    {PD_FEATURE_TOTAL_MEM,            make_u64},
    {PD_FEATURE_CMDLINE,              make_cmdline},
    {PD_FEATURE_EVENT_DESC,           make_event_desc},
    {PD_FEATURE_CPU_TOPOLOGY,         make_newest_topology},
    {PD_FEATURE_NUMA_TOPOLOGY,        make_numa_topology},
    {PD_FEATURE_BRANCH_STACK,         make_nothing},
    {PD_FEATURE_PMU_MAPPINGS,         make_pmu_mappings},
    {PD_FEATURE_GROUP_DESC,           make_group_desc},
    {PD_FEATURE_AUXTRACE,             make_auxtrace},
    {PD_FEATURE_STAT,                 make_nothing},
    {PD_FEATURE_CACHE,                make_cache},
    {PD_FEATURE_SAMPLE_TIME,          make_sample_time},
    {PD_FEATURE_MEM_TOPOLOGY,         make_mem_topology},
    {PD_FEATURE_CLOCKID,              make_u64},
    {PD_FEATURE_DIR_FORMAT,           make_u64},
    {PD_FEATURE_BPF_PROG_INFO,        make_bpf_prog},
    {PD_FEATURE_BPF_BTF,              make_bpf_btf},
    {PD_FEATURE_COMPRESSED,           make_compressed},
    {PD_FEATURE_CPU_PMU_CAPS,         make_cpu_pmu_caps},
    {PD_FEATURE_CLOCK_DATA,           make_clock_data},
    {PD_FEATURE_HYBRID_TOPOLOGY,      make_hybrid_topology},
    {PD_FEATURE_PMU_CAPS,             make_pmu_caps},
    {PD_FEATURE_CPU_DOMAIN_INFO,      make_cpu_domain_info},
    {PD_FEATURE_E_MACHINE,            make_e_machine},
    {PD_FEATURE_CLN_SIZE,             make_cln_size},
    {PD_FEATURE_SIMPLEPERF_META_INFO, make_meta_info},
};
/* clang-format on */

/* A body of the feature; false for a bit that we have none of. */
static bool make_body(unsigned bit, Buffer *b, bool swap) {
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        if (bodies[i].bit == bit) {
            bodies[i].make(b, swap);
            return true;
        }
    return false;
}

static int read_buffer(PdEnvironment *env, unsigned bit, const Buffer *b, bool swap) {
    return pd_environment_read(env, bit, buffer_bytes(b), swap);
}

/* An environment that has every feature of make_body(). */
static PdEnvironment *full_environment(bool swap) {
    PdEnvironment *env = NULL;

    if (pd_environment_new(&env) < 0)
        return NULL;
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        _cleanup_(buffer_done) Buffer body = {};

        if (make_body(bit, &body, swap) && read_buffer(env, bit, &body, swap) < 0)
            return pd_environment_free(env);
    }
    return env;
}

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

static bool prints(const PdEnvironment *env, const char *line) {
    _cleanup_(buffer_done) Buffer out = {};

    pd_environment_print(env, &out);
    buffer_zero(&out, 1);
    if (buffer_error(&out) < 0)
        return false;
    if (!strstr((const char *)out.data, line))
        printf("# not found: %s# in\n%s\n", line, (const char *)out.data);
    return strstr((const char *)out.data, line);
}

TEST(an_environment_is_printed_in_the_words_of_perf) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);

    CHECK(env);
    CHECK(prints(env, "# hostname : some \\xff words\n# os release : some \\xff words\n"));
    CHECK(prints(env, "# nrcpus online : 1\n# nrcpus avail : 2\n"));
    CHECK(prints(env, "# total memory : 78187493530 kB\n"));
    CHECK(prints(env, "# cmdline : perf  it\\'s a word that is longer than the sixty-four bytes of "
                      "one piece of it \n"));
    CHECK(prints(env, "# event : name = cpu-clock, , id = { 100, 101 }, type = 1, size = 136, { "
                      "sample_period, sample_freq } = 99, sample_type = IP|TID, read_format = ID, "
                      "disabled = 1, freq = 1, precise_ip = 2\n"));
    CHECK(prints(env, "# event : name = dummy:HG, , type = 1, size = 136, config = 0x9, "));
    CHECK(prints(env, "# sibling sockets : 0-1\n# sibling dies    : 0-1\n# sibling threads : 0\n"
                      "# sibling threads : 1\n# CPU 0: Core ID 0, Die ID 7, Socket ID 0\n"));
    CHECK(prints(env, "# node0 meminfo  : total = 4000 kB, free = 3000 kB\n"
                      "# node0 cpu list : 0-1\n"));
    CHECK(prints(env, "# contains samples with branch stack\n"));
    CHECK(prints(env, "# pmu mappings: software = 1, msr = 8\n"));
    CHECK(prints(env, "# group: {cpu-clock,dummy:HG}\n"));
    CHECK(prints(env, "# contains AUX area data (e.g. instruction trace)\n"));
    CHECK(prints(env, "# contains stat data\n"));
    CHECK(prints(env, "# CPU cache info:\n#  L1 Data                 32K [0]\n"));
    CHECK(prints(env, "# time of first sample : 59.122544\n# time of last sample : 59.239681\n"
                      "# sample duration :    117.136 ms\n"));
    CHECK(prints(env, "# memory nodes (nr 1, block size 0x8000000):\n"
                      "#    0 [1536M]: 0-1,56-64,69\n"));
    CHECK(prints(env, "# compressed : Zstd, level = 3, ratio = 7\n"));
    CHECK(prints(env, "# cpu pmu capabilities: max_precise=0\n"));
    CHECK(prints(env, "# clockid: monotonic (1)\n# reference time: "));
    CHECK(prints(env, " = 1700000000.123456 (TOD) = 5.000000007 (monotonic)\n"));
    CHECK(prints(env, "# hybrid cpu system:\n# cpu_core cpu list : 0-15\n"));
    CHECK(prints(env, "# cpu_atom pmu capabilities: branches=32\n"));
}

TEST(groups_that_overlap_do_not_name_events_again) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);
    _cleanup_(buffer_done) Buffer body = {};

    CHECK(env);
    U32S(&body, false, 2);
    for (unsigned i = 0; i < 2; i++) {
        add_string(&body, "all", false);
        U32S(&body, false, 0, UINT32_MAX);
    }
    CHECK_OK(read_buffer(env, PD_FEATURE_GROUP_DESC, &body, false));
    CHECK(prints(env, "# group: all{cpu-clock,dummy:HG}\n# group: all{}\n"));
}

/* A program of two functions, its arrays in the order of perf's bits. */
TEST(bpf_programs_are_printed_by_function) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};

    CHECK_OK(pd_environment_new(&env));
    U32S(&body, false, 1, 192, 16 + 8 + 16);
    U64S(&body, false, 0);
    for (uint32_t at = 0; at < 192; at += 4)
        buffer_u32(&body,
                   at == 4                               ? 33
                   : at == 104 || at == 108 || at == 180 ? 2
                   : at == 120                           ? 16
                   : at == 184                           ? 24
                                                         : 0,
                   false);
    U64S(&body, false, 0xffffffffc0001000ULL, 0xffffffffc0002000ULL);
    U32S(&body, false, 72, 99);
    buffer_append(&body, "\1\2\3\4\5\6\7\10\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8", 16);
    CHECK_OK(read_buffer(env, PD_FEATURE_BPF_PROG_INFO, &body, false));
    CHECK(prints(env,
                 "# bpf_prog_info 33:\n"
                 "# \tsub_prog 0: bpf_prog_0102030405060708_F addr 0xffffffffc0001000 size 72\n"
                 "# \tsub_prog 1: bpf_prog_a1a2a3a4a5a6a7a8_F addr 0xffffffffc0002000 size "
                 "99\n"));
}

TEST(an_environment_is_described_by_the_names_of_its_members) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = full_environment(false);
    _cleanup_(buffer_done) Buffer out = {};
    Fields fields = fields_to(&out, FIELDS_JSON);
    const char *json;

    CHECK(env);
    fields_begin_object(&fields, NULL);
    pd_environment_describe(env, &fields);
    fields_end_object(&fields);
    buffer_zero(&out, 1);
    CHECK_OK(buffer_error(&out));
    json = (const char *)out.data;
    CHECK(strstr(json, "\"hostname\":\"some \\\\xff words\",\"osrelease\":"));
    CHECK(strstr(json, "\"nrcpus_online\":1,\"nrcpus_avail\":2,\"cpudesc\":"));
    CHECK(strstr(json, "\"total_mem_kb\":78187493530,"));
    CHECK(strstr(json, "\"cmdline\":[\"perf\",\"\",\"it's a word"));
    CHECK(strstr(json, "\"sample_time\":{\"first\":59122544999,\"last\":59239681001}"));
    CHECK(strstr(json, "\"build_id\":\"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\""));
}

TEST_MAIN()
