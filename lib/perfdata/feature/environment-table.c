/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"

#include <errno.h>
#include <string.h>

#include "perfdata/feature/environment-feature.h"
#include "util/array.h"
#include "util/text.h"

/*
 * The header features as one struct, described by one table. The code function of a feature's row
 * parses the body. Bytes that it does not understand are kept: a whole body in `unknown`, the rest
 * of an understood one in `tails`. The same functions write the body again.
 */

typedef struct FeatureRow {
    unsigned bit;
    const char *name;
    void (*code)(Codec *c, PdEnvironment *env); /* reads, writes and frees; NULL: kept as bytes */
    void (*print)(const PdEnvironment *env, Buffer *out);
    void (*describe)(const PdEnvironment *env, Fields *fields);
} FeatureRow;

/* NULL where perf prints nothing; events are described by the code that counts them. */
/* clang-format off */
static const FeatureRow features[] = {
    {PD_FEATURE_TRACING_DATA,    "TRACING_DATA",    code_tracing_data,    NULL,                  describe_tracing_data},
    {PD_FEATURE_BUILD_ID,        "BUILD_ID",        code_build_id,        NULL,                  describe_build_id},
    {PD_FEATURE_HOSTNAME,        "HOSTNAME",        code_hostname,        print_hostname,        describe_hostname},
    {PD_FEATURE_OSRELEASE,       "OSRELEASE",       code_osrelease,       print_osrelease,       describe_osrelease},
    {PD_FEATURE_VERSION,         "VERSION",         code_version,         print_version,         describe_version},
    {PD_FEATURE_ARCH,            "ARCH",            code_arch,            print_arch,            describe_arch},
    {PD_FEATURE_NRCPUS,          "NRCPUS",          code_nrcpus,          print_nrcpus,          describe_nrcpus},
    {PD_FEATURE_CPUDESC,         "CPUDESC",         code_cpudesc,         print_cpudesc,         describe_cpudesc},
    {PD_FEATURE_CPUID,           "CPUID",           code_cpuid,           print_cpuid,           describe_cpuid},
    {PD_FEATURE_TOTAL_MEM,       "TOTAL_MEM",       code_total_mem,       print_total_mem,       describe_total_mem},
    {PD_FEATURE_CMDLINE,         "CMDLINE",         code_cmdline,         print_cmdline,         describe_cmdline},
    {PD_FEATURE_EVENT_DESC,      "EVENT_DESC",      code_event_desc,      print_event_desc,      NULL},
    {PD_FEATURE_CPU_TOPOLOGY,    "CPU_TOPOLOGY",    code_cpu_topology,    print_cpu_topology,    describe_cpu_topology},
    {PD_FEATURE_NUMA_TOPOLOGY,   "NUMA_TOPOLOGY",   code_numa_topology,   print_numa_topology,   describe_numa_topology},
    {PD_FEATURE_BRANCH_STACK,    "BRANCH_STACK",    code_branch_stack,    print_branch_stack,    describe_branch_stack},
    {PD_FEATURE_PMU_MAPPINGS,    "PMU_MAPPINGS",    code_pmu_mappings,    print_pmu_mappings,    describe_pmu_mappings},
    {PD_FEATURE_GROUP_DESC,      "GROUP_DESC",      code_group_desc,      print_group_desc,      describe_group_desc},
    {PD_FEATURE_AUXTRACE,        "AUXTRACE",        code_auxtrace,        print_auxtrace,        describe_auxtrace},
    {PD_FEATURE_STAT,            "STAT",            code_stat,            print_stat,            describe_stat},
    {PD_FEATURE_CACHE,           "CACHE",           code_cache,           print_cache,           describe_cache},
    {PD_FEATURE_SAMPLE_TIME,     "SAMPLE_TIME",     code_sample_time,     print_sample_time,     describe_sample_time},
    {PD_FEATURE_MEM_TOPOLOGY,    "MEM_TOPOLOGY",    code_mem_topology,    print_mem_topology,    describe_mem_topology},
    {PD_FEATURE_CLOCKID,         "CLOCKID",         code_clockid,         print_clockid,         describe_clockid},
    {PD_FEATURE_DIR_FORMAT,      "DIR_FORMAT",      code_dir_format,      print_dir_format,      describe_dir_format},
    {PD_FEATURE_BPF_PROG_INFO,   "BPF_PROG_INFO",   code_bpf_prog_info,   print_bpf_prog_info,   describe_bpf_prog_info},
    {PD_FEATURE_BPF_BTF,         "BPF_BTF",         code_bpf_btf,         print_bpf_btf,         describe_bpf_btf},
    {PD_FEATURE_COMPRESSED,      "COMPRESSED",      code_compressed,      print_compressed,      describe_compressed},
    {PD_FEATURE_CPU_PMU_CAPS,    "CPU_PMU_CAPS",    code_cpu_pmu_caps,    print_cpu_pmu_caps,    describe_cpu_pmu_caps},
    {PD_FEATURE_CLOCK_DATA,      "CLOCK_DATA",      code_clock_data,      print_clock_data,      describe_clock_data},
    {PD_FEATURE_HYBRID_TOPOLOGY, "HYBRID_TOPOLOGY", code_hybrid_topology, print_hybrid_topology, describe_hybrid_topology},
    {PD_FEATURE_PMU_CAPS,        "PMU_CAPS",        code_pmu_caps,        print_pmu_caps,        describe_pmu_caps},
    {PD_FEATURE_CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO", code_cpu_domain_info, print_cpu_domain_info, describe_cpu_domain_info},
    {PD_FEATURE_E_MACHINE,       "E_MACHINE",       code_e_machine,       print_e_machine,       describe_e_machine},
    {PD_FEATURE_CLN_SIZE,        "CLN_SIZE",        code_cln_size,        print_cln_size,        describe_cln_size},

    {PD_FEATURE_SIMPLEPERF_FILE,              "SIMPLEPERF_FILE",              NULL,           NULL,            NULL},
    {PD_FEATURE_SIMPLEPERF_META_INFO,         "SIMPLEPERF_META_INFO",         code_meta_info, print_meta_info, describe_meta_info},
    {PD_FEATURE_SIMPLEPERF_DEBUG_UNWIND,      "SIMPLEPERF_DEBUG_UNWIND",      NULL,           NULL,            NULL},
    {PD_FEATURE_SIMPLEPERF_DEBUG_UNWIND_FILE, "SIMPLEPERF_DEBUG_UNWIND_FILE", NULL,           NULL,            NULL},
    {PD_FEATURE_SIMPLEPERF_FILE2,             "SIMPLEPERF_FILE2",             NULL,           NULL,            NULL},

    {PD_FEATURE_PROFD_COVERAGE, "PROFD_COVERAGE", code_coverage, print_coverage, describe_coverage},
};
/* clang-format on */

static const FeatureRow *environment_table_row_of(unsigned bit) {
    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        if (features[i].bit == bit)
            return &features[i];
    return NULL;
}

const char *pd_feature_name(unsigned bit) {
    const FeatureRow *row = environment_table_row_of(bit);

    return row ? row->name : NULL;
}

int pd_environment_new(PdEnvironment **ret) {
    PdEnvironment *env = calloc(1, sizeof(*env));

    if (!env)
        return -ENOMEM;
    *ret = env;
    return 0;
}

static void environment_table_clear_feature(PdEnvironment *env, const FeatureRow *row) {
    Codec c = {.mode = CODEC_CLEAR};

    if (row && row->code)
        row->code(&c, env);
}

static const PdUnknownFeature *environment_table_find_bytes(const PdUnknownFeature *list, size_t n,
                                                            unsigned bit) {
    for (size_t i = 0; i < n; i++)
        if (list[i].bit == bit)
            return &list[i];
    return NULL;
}

static void environment_table_forget_bytes(PdUnknownFeature *list, size_t *n, unsigned bit) {
    for (size_t i = 0; i < *n; i++) {
        if (list[i].bit != bit)
            continue;
        free(list[i].body);
        list[i] = list[--*n];
        return;
    }
}

static int environment_table_keep_bytes(PdUnknownFeature **list, size_t *n, unsigned bit,
                                        Bytes bytes) {
    _cleanup_free_ uint8_t *body = malloc(bytes.size > 0 ? bytes.size : 1);
    PdUnknownFeature *p;

    if (!body)
        return -ENOMEM;
    if (bytes.size > 0)
        memcpy(body, bytes.data, bytes.size);
    p = array_grow(list, n);
    if (!p)
        return -ENOMEM;
    *p = (PdUnknownFeature){.bit = bit, .body = TAKE_PTR(body), .size = bytes.size};
    return 0;
}

PdEnvironment *pd_environment_free(PdEnvironment *env) {
    if (!env)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        environment_table_clear_feature(env, &features[i]);
    for (size_t i = 0; i < env->n_unknown; i++)
        free(env->unknown[i].body);
    for (size_t i = 0; i < env->n_tails; i++)
        free(env->tails[i].body);
    free(env->unknown);
    free(env->tails);
    free(env);
    return NULL;
}

bool pd_environment_is_of_profd(const PdEnvironment *env) {
    return env->has[PD_FEATURE_VERSION] && env->version && strncmp(env->version, "profd", 5) == 0;
}

void environment_forget(PdEnvironment *env, unsigned bit) {
    environment_table_clear_feature(env, environment_table_row_of(bit));
    environment_table_forget_bytes(env->unknown, &env->n_unknown, bit);
    environment_table_forget_bytes(env->tails, &env->n_tails, bit);
    env->has[bit] = false;
}

/* Reads a body that its row understands, except for a tail. */
static int environment_table_read_known(PdEnvironment *env, const FeatureRow *row, Bytes body,
                                        bool swap) {
    /* An empty body may have a NULL pointer. */
    static const uint8_t nothing[1];
    Codec c = {
        .mode = CODEC_READ,
        .swap = swap,
        .in = cursor_of(body.size > 0 ? body.data : nothing, body.size, swap),
        .budget = CODEC_ITEMS_MAX,
    };
    int r;

    row->code(&c, env);
    r = c.error ? c.error : c.in.failed ? -EBADMSG : 0;
    if (r == 0 && cursor_left(&c.in) > 0)
        r = environment_table_keep_bytes(&env->tails, &env->n_tails, row->bit,
                                         (Bytes){.data = c.in.at, .size = cursor_left(&c.in)});
    if (r < 0)
        environment_table_clear_feature(env, row);
    return r;
}

int pd_environment_read(PdEnvironment *env, unsigned bit, Bytes body, bool swap) {
    const FeatureRow *row = environment_table_row_of(bit);
    int r = 0, k;

    if (bit == 0 || bit >= PD_FEATURE_BITS)
        return -EINVAL;
    environment_forget(env, bit);
    if (row && row->code) {
        r = environment_table_read_known(env, row, body, swap);
        if (r != -EBADMSG) {
            env->has[bit] = r == 0;
            return r;
        }
    }
    k = environment_table_keep_bytes(&env->unknown, &env->n_unknown, bit, body);
    return k < 0 ? k : r;
}

int pd_environment_write(const PdEnvironment *env, unsigned bit, Buffer *out, bool swap) {
    const PdUnknownFeature *kept = environment_table_find_bytes(env->unknown, env->n_unknown, bit);
    const PdUnknownFeature *tail = environment_table_find_bytes(env->tails, env->n_tails, bit);
    const FeatureRow *row = environment_table_row_of(bit);
    Codec c = {.mode = CODEC_WRITE, .swap = swap, .out = out};

    if (kept) {
        buffer_append(out, kept->body, kept->size);
        return buffer_error(out);
    }
    if (bit >= PD_FEATURE_BITS || !env->has[bit] || !row || !row->code)
        return -ENOENT;
    /* One function serves all modes; writing does not change the environment. */
    row->code(&c, (PdEnvironment *)env);
    if (tail)
        buffer_append(out, tail->body, tail->size);
    return buffer_error(out);
}

static void environment_table_print_unknown(const PdUnknownFeature *u, Buffer *out) {
    const FeatureRow *row = environment_table_row_of(u->bit);

    if (row && row->code)
        text_printf(out, "# %s: damaged, %zu bytes\n", row->name, u->size);
    else if (row)
        text_printf(out, "# %s: %zu bytes\n", row->name, u->size);
    else
        text_printf(out, "# feature %u: unknown, %zu bytes\n", u->bit, u->size);
}

void pd_environment_print(const PdEnvironment *env, Buffer *out) {
    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++) {
        const PdUnknownFeature *kept =
            environment_table_find_bytes(env->unknown, env->n_unknown, bit);
        const FeatureRow *row = environment_table_row_of(bit);

        if (kept)
            environment_table_print_unknown(kept, out);
        else if (row && env->has[bit] && row->print)
            row->print(env, out);
    }
}

void pd_environment_describe_feature(const PdEnvironment *env, unsigned bit, Fields *fields) {
    const FeatureRow *row = environment_table_row_of(bit);

    if (row && env->has[bit] && row->describe)
        row->describe(env, fields);
}

void pd_environment_describe(const PdEnvironment *env, Fields *fields) {
    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        pd_environment_describe_feature(env, features[i].bit, fields);
    if (env->n_unknown == 0)
        return;
    for (size_t i = fields_begin_list(fields, "unknown_features");
         fields_next(fields, i, env->n_unknown); i++) {
        const char *name = pd_feature_name(env->unknown[i].bit);

        fields_u64(fields, "bit", env->unknown[i].bit);
        if (name)
            fields_str(fields, "name", name);
        fields_u64(fields, "bytes", env->unknown[i].size);
    }
}
