/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bodies of header features, written number by number as perf lays them out, so that the codec is
 * compared with the format and not with itself.
 */

#include "perfdata/feature/environment.h"
#include "test.h"
#include "util/text.h"

enum { CPUS = 2 };

static inline void add_string(Buffer *b, const char *s, bool swap) {
    size_t n = strlen(s) + 1, padded = (n + 63) / 64 * 64;

    buffer_u32(b, (uint32_t)padded, swap);
    buffer_append(b, s, n);
    buffer_zero(b, padded - n);
}

static inline void add_u32s(Buffer *b, bool swap, size_t n, const uint32_t *v) {
    for (size_t i = 0; i < n; i++)
        buffer_u32(b, v[i], swap);
}

static inline void add_u64s(Buffer *b, bool swap, size_t n, const uint64_t *v) {
    for (size_t i = 0; i < n; i++)
        buffer_u64(b, v[i], swap);
}

#define U32S(b, swap, ...)                                                                         \
    add_u32s(b, swap, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (const uint32_t[]){__VA_ARGS__})
#define U64S(b, swap, ...)                                                                         \
    add_u64s(b, swap, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__})

static inline void add_build_id(Buffer *b, bool swap, uint16_t misc, uint32_t pid, unsigned size,
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

static inline void add_event(Buffer *b, bool swap, const char *name, uint64_t config,
                             size_t n_ids) {
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

static inline void add_topology(Buffer *b, bool swap, unsigned revision) {
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

static inline void make_bpf_prog(Buffer *b, bool swap) {
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

static inline void make_tracing_data(Buffer *b, _unused_ bool swap) {
    buffer_append(b, "\x17\x08\x44tracing", 10);
}

static inline void make_build_id(Buffer *b, bool swap) {
    add_build_id(b, swap, 1, UINT32_MAX, 20, "[kernel.kallsyms]", 64);
    add_build_id(b, swap, 0x8002, UINT32_MAX, 16, "/usr/lib/libc.so.6", 24);
}

static inline void make_string(Buffer *b, bool swap) {
    add_string(b, "some \xff words", swap);
}

static inline void make_nrcpus(Buffer *b, bool swap) {
    U32S(b, swap, CPUS, 1);
}

static inline void make_u64(Buffer *b, bool swap) {
    U64S(b, swap, 0x123456789aULL);
}

static inline void make_cmdline(Buffer *b, bool swap) {
    U32S(b, swap, 3);
    add_string(b, "perf", swap);
    add_string(b, "", swap);
    add_string(b, "it's a word that is longer than the sixty-four bytes of one piece of it", swap);
}

static inline void make_event_desc(Buffer *b, bool swap) {
    U32S(b, swap, 2, 136);
    add_event(b, swap, "cpu-clock", 0, 2);
    add_event(b, swap, "dummy:HG", 9, 0);
}

static inline void make_newest_topology(Buffer *b, bool swap) {
    add_topology(b, swap, 3);
}

static inline void make_numa_topology(Buffer *b, bool swap) {
    U32S(b, swap, 1, 0);
    U64S(b, swap, 4000, 3000);
    add_string(b, "0-1", swap);
}

static inline void make_pmu_mappings(Buffer *b, bool swap) {
    U32S(b, swap, 2, 1);
    add_string(b, "software", swap);
    U32S(b, swap, 8);
    add_string(b, "msr", swap);
}

static inline void make_group_desc(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "{anon_group}", swap);
    U32S(b, swap, 0, 2);
}

static inline void make_auxtrace(Buffer *b, bool swap) {
    U64S(b, swap, 2, 0x1000, 64, 0x2000, 128);
}

static inline void make_cache(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1, 1, 64, 512, 8);
    add_string(b, "Data", swap);
    add_string(b, "32K", swap);
    add_string(b, "0", swap);
}

static inline void make_sample_time(Buffer *b, bool swap) {
    U64S(b, swap, 59122544999ULL, 59239681001ULL);
}

static inline void make_mem_topology(Buffer *b, bool swap) {
    U64S(b, swap, 1, 0x8000000, 1, 0, 70, 70, 0xff00000000000003ULL, 0x21);
}

static inline void make_bpf_btf(Buffer *b, bool swap) {
    U32S(b, swap, 1, 9, 4);
    buffer_append(b, "btf!", 4);
}

static inline void make_compressed(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1, 3, 7, 528384);
}

static inline void make_cpu_pmu_caps(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "max_precise", swap);
    add_string(b, "0", swap);
}

static inline void make_clock_data(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1);
    U64S(b, swap, 1700000000123456789ULL, 5000000007ULL);
}

static inline void make_hybrid_topology(Buffer *b, bool swap) {
    U32S(b, swap, 1);
    add_string(b, "cpu_core", swap);
    add_string(b, "0-15", swap);
}

static inline void make_pmu_caps(Buffer *b, bool swap) {
    U32S(b, swap, 1, 1);
    add_string(b, "branches", swap);
    add_string(b, "32", swap);
    add_string(b, "cpu_atom", swap);
}

static inline void make_cpu_domain_info(Buffer *b, bool swap) {
    U32S(b, swap, 17, 1, 0, 1, 0);
    add_string(b, "MC", swap);
    add_string(b, "3", swap);
    add_string(b, "0-1", swap);
    U32S(b, swap, 1, 0);
}

static inline void make_e_machine(Buffer *b, bool swap) {
    U32S(b, swap, 62, 5);
}

static inline void make_cln_size(Buffer *b, bool swap) {
    U32S(b, swap, 64);
}

static inline void make_meta_info(Buffer *b, _unused_ bool swap) {
    buffer_append(b, "clockid\0monotonic", 18);
}

static inline void make_nothing(_unused_ Buffer *b, _unused_ bool swap) {
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
static inline bool make_body(unsigned bit, Buffer *b, bool swap) {
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        if (bodies[i].bit == bit) {
            bodies[i].make(b, swap);
            return true;
        }
    return false;
}

static inline int read_buffer(PdEnvironment *env, unsigned bit, const Buffer *b, bool swap) {
    return pd_environment_read(env, bit, buffer_bytes(b), swap);
}

/* An environment that has every feature of make_body(). */
static inline PdEnvironment *full_environment(bool swap) {
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
