/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"

#include "make-feature.h"
#include "test.h"
#include "util/fields.h"

/* Features for people and programs: in the words of perf, and as JSON. */

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

/* A function of a name of `name_size` bytes that cannot be printed. */
static void add_btf_of_one(Buffer *b, uint32_t name_size) {
    U32S(b, false, 1, 9, 24 + 12 + 1 + name_size + 1);
    buffer_append(b, "\x9f\xeb\1\0", 4);
    U32S(b, false, 24, 0, 12, 12, 1 + name_size + 1);
    U32S(b, false, 1, 12 << 24, 0);
    buffer_zero(b, 1);
    memset(buffer_reserve(b, name_size), 0xff, name_size);
    buffer_commit(b, name_size);
    buffer_zero(b, 1);
}

/* All arrays of the program begin with the same bytes, which name the only type. */
TEST(one_long_name_of_many_functions_is_printed_in_bounds) {
    enum { FUNCTIONS = 128 * 1024, PRINTED_MAX = 100 * 1024 * 1024 };
    static const struct {
        uint32_t at, value;
    } info[] = {{104, FUNCTIONS}, {108, FUNCTIONS}, {180, FUNCTIONS}, {128, 9}, {132, 8}};
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {}, btf = {}, out = {};

    CHECK_OK(pd_environment_new(&env));
    U32S(&body, false, 1, 192, FUNCTIONS * 8);
    U64S(&body, false, 0);
    for (uint32_t at = 0; at < 192; at += 4) {
        uint32_t value = 0;

        for (size_t i = 0; i < ARRAY_SIZE(info); i++)
            value = info[i].at == at ? info[i].value : value;
        buffer_u32(&body, value, false);
    }
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        U32S(&body, false, 0, 1);
    CHECK_OK(read_buffer(env, PD_FEATURE_BPF_PROG_INFO, &body, false));
    add_btf_of_one(&btf, 1024 * 1024);
    CHECK_OK(read_buffer(env, PD_FEATURE_BPF_BTF, &btf, false));
    pd_environment_print(env, &out);
    CHECK_OK(buffer_error(&out));
    CHECK(out.size > FUNCTIONS * (size_t)50);
    CHECK(out.size < PRINTED_MAX);
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
