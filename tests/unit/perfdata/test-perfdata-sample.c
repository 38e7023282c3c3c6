/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/sample.h"

#include "perfdata/describe/record-describe.h"
#include "perfdata/tracing/tracing.h"
#include "util/text.h"

#include "make-record.h"
#include "test.h"

/* Samples of every shape, in both byte orders, cut off at every byte. */

static const PdEvent everything = {
    .attr =
        {
            .sample_type = (PD_SAMPLE_WEIGHT_STRUCT << 1) - 1 - PD_SAMPLE_WEIGHT,
            .sample_period = 4000,
            .read_format = PD_FORMAT_TOTAL_TIME_ENABLED | PD_FORMAT_TOTAL_TIME_RUNNING |
                           PD_FORMAT_ID | PD_FORMAT_GROUP | PD_FORMAT_LOST,
            .branch_sample_type = PD_BRANCH_HW_INDEX | PD_BRANCH_COUNTERS,
            .sample_regs_user = 0x8000000000000003,
            .sample_regs_intr = 0x10,
            .sample_stack_user = 16,
        },
};

static void make_head(Make *m) {
    u64(m, 0xabc);
    u64(m, 0xffffffff81000000);
    u32(m, 12);
    u32(m, 13);
    u64(m, 1500000000);
    u64(m, 0xadd5);
    u64(m, 0xabc);
    u64(m, 0x57);
    u32(m, 3);
    u32(m, 0);
    u64(m, 4001);
}

static void make_group(Make *m) {
    u64(m, 2);
    u64(m, 100);
    u64(m, 50);
    for (unsigned i = 0; i < 2; i++) {
        u64(m, 1000 + i);
        u64(m, 70 + i);
        u64(m, 5 + i);
    }
}

/* Flags of a branch that was mispredicted in a transaction, 300 cycles ago, a return, speculative
 * on the wrong path, privilege 2, as the bit-field of the byte order. */
static uint64_t branch_flags(bool big_endian) {
    static const struct {
        unsigned at, n, v;
    } parts[] = {{0, 1, 1},  {2, 1, 1},  {4, 16, 300}, {20, 4, 6},
                 {24, 2, 1}, {26, 4, 5}, {30, 3, 2}};
    uint64_t v = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        unsigned shift = big_endian ? 64 - parts[i].at - parts[i].n : parts[i].at;

        v |= (uint64_t)parts[i].v << shift;
    }
    return v;
}

static bool is_big_endian(const Make *m) {
    return m->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static void make_everything(Make *m) {
    make_head(m);
    make_group(m);
    u64(m, 2);
    u64(m, PD_CONTEXT_USER);
    u64(m, 0x400123);
    u32(m, 4);
    bytes(m, "raw!", 4);
    u64(m, 1);
    u64(m, 9);
    u64(m, 0xf0);
    u64(m, 0x70);
    u64(m, branch_flags(is_big_endian(m)));
    u64(m, 0xc0);
    u64(m, 2);
    for (unsigned i = 0; i < 3; i++)
        u64(m, 0x10 + i);
    u64(m, 16);
    bytes(m, "stack of a taskx", 16);
    u64(m, 8);
    u64(m, 0x0003000200000001);
    u64(m, 0x1e);
    u64(m, 0x100000003);
    u64(m, 1);
    u64(m, 0x99);
    u64(m, 0x1000);
    u64(m, 0xc6);
    u64(m, 4096);
    u64(m, 2097152);
    u64(m, 8);
    bytes(m, "auxdata8", 8);
}

TEST(every_field_is_read_in_both_byte_orders) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord r;
        PdSample s;
        PdReadValue v;
        PdBranch b;

        make_everything(&m);
        r = make_record(&m, PD_RECORD_SAMPLE, PD_MISC_USER);
        CHECK_OK(pd_sample_parse(&r, &everything, &s));
        CHECK_EQ(s.id, 0xabcU);
        CHECK_EQ(s.ip, 0xffffffff81000000U);
        CHECK_EQ(s.pid, 12U);
        CHECK_EQ(s.tid, 13U);
        CHECK_EQ(s.time, 1500000000U);
        CHECK_EQ(s.addr, 0xadd5U);
        CHECK_EQ(s.stream_id, 0x57U);
        CHECK_EQ(s.cpu, 3U);
        CHECK_EQ(s.period, 4001U);
        CHECK_EQ(s.read.n, 2U);
        CHECK_EQ(s.read.time_enabled, 100U);
        CHECK_EQ(s.read.time_running, 50U);
        v = pd_read_at(&s.read, 1);
        CHECK_EQ(v.value, 1001U);
        CHECK_EQ(v.id, 71U);
        CHECK_EQ(v.lost, 6U);
        CHECK_EQ(s.callchain.n, 2U);
        CHECK_EQ(pd_u64_at(&s.callchain, 0), PD_CONTEXT_USER);
        CHECK_EQ(pd_u64_at(&s.callchain, 1), 0x400123U);
        CHECK(bytes_equal_str(s.raw, "raw!"));
        CHECK_EQ(s.branches.n, 1U);
        CHECK_EQ(s.branches.hw_index, 9U);
        CHECK_EQ(pd_u64_at(&s.branches.counters, 0), 0xc0U);
        b = pd_branch_at(&s.branches, 0);
        CHECK_EQ(b.from, 0xf0U);
        CHECK_EQ(b.to, 0x70U);
        CHECK(b.mispredicted && !b.predicted && b.in_tx && !b.abort);
        CHECK_EQ(b.cycles, 300);
        CHECK_EQ(b.type, 6);
        CHECK_EQ(b.spec, 1);
        CHECK_EQ(b.new_type, 5);
        CHECK_EQ(b.priv, 2);
        CHECK_EQ(s.user_regs.abi, 2U);
        CHECK_EQ(pd_u64_at(&s.user_regs.values, 2), 0x12U);
        CHECK_EQ(s.user_stack_size, 16U);
        CHECK(bytes_equal_str(s.user_stack, "stack of"));
        CHECK_EQ(s.weight, 0x0003000200000001U);
        CHECK_EQ(s.data_src, 0x1eU);
        CHECK_EQ(s.transaction, 0x100000003U);
        CHECK_EQ(pd_u64_at(&s.intr_regs.values, 0), 0x99U);
        CHECK_EQ(s.phys_addr, 0x1000U);
        CHECK_EQ(s.cgroup, 0xc6U);
        CHECK_EQ(s.data_page_size, 4096U);
        CHECK_EQ(s.code_page_size, 2097152U);
        CHECK(bytes_equal_str(s.aux, "auxdata8"));
    }
}

TEST(a_sample_truncated_anywhere_is_refused) {
    _cleanup_(make_done) Make m = {};

    make_everything(&m);
    for (size_t n = 0; n < m.body.size; n++) {
        PdRecord r = make_cut(&m, PD_RECORD_SAMPLE, PD_MISC_USER, n);
        PdSample s;

        CHECK_EQ(pd_sample_parse(&r, &everything, &s), -EBADMSG);
    }
}

TEST(counts_beyond_the_record_are_refused) {
    static const struct {
        uint64_t type, count;
    } rows[] = {
        {PD_SAMPLE_CALLCHAIN, 1ULL << 61},    {PD_SAMPLE_CALLCHAIN, (1ULL << 61) + 1},
        {PD_SAMPLE_CALLCHAIN, UINT64_MAX},    {PD_SAMPLE_CALLCHAIN, 3},
        {PD_SAMPLE_BRANCH_STACK, 1ULL << 61}, {PD_SAMPLE_BRANCH_STACK, 0xaaaaaaaaaaaaaab},
        {PD_SAMPLE_STACK_USER, 1ULL << 63},   {PD_SAMPLE_STACK_USER, UINT64_MAX - 7},
        {PD_SAMPLE_AUX, UINT64_MAX},          {PD_SAMPLE_AUX, 17},
        {PD_SAMPLE_RAW, UINT32_MAX},          {PD_SAMPLE_READ, 1ULL << 61},
        {PD_SAMPLE_READ, UINT64_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(make_done) Make m = {};
        PdEvent e = {.attr = {.sample_type = rows[i].type, .read_format = PD_FORMAT_GROUP}};
        PdRecord r;
        PdSample s;

        u64(&m, rows[i].count);
        u64(&m, 1);
        u64(&m, 2);
        r = make_record(&m, PD_RECORD_SAMPLE, 0);
        CHECK_EQ(pd_sample_parse(&r, &e, &s), -EBADMSG);
    }
}

TEST(missing_sample_fields_read_as_none) {
    PdEvent e = {.attr = {.sample_type = PD_SAMPLE_IP, .sample_period = 99}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdSample s;

    u64(&m, 0x1234);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_OK(pd_sample_parse(&r, &e, &s));
    CHECK_EQ(s.pid, UINT32_MAX);
    CHECK_EQ(s.tid, UINT32_MAX);
    CHECK_EQ(s.cpu, UINT32_MAX);
    CHECK_EQ(s.period, 99U);
    CHECK_EQ(s.callchain.n, 0U);
}

TEST(registers_of_abi_none_have_no_values) {
    PdEvent e = {.attr = {.sample_type = PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER,
                          .sample_regs_user = UINT64_MAX}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdSample s;

    u64(&m, 0);
    u64(&m, 0);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_OK(pd_sample_parse(&r, &e, &s));
    CHECK_EQ(s.user_regs.values.n, 0U);
    CHECK_EQ(s.user_stack.size, (size_t)0);
}

TEST(more_stack_used_than_copied_is_refused) {
    PdEvent e = {.attr = {.sample_type = PD_SAMPLE_STACK_USER}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdSample s;

    u64(&m, 8);
    u64(&m, 0x11);
    u64(&m, 9);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_EQ(pd_sample_parse(&r, &e, &s), -EBADMSG);
}

TEST(without_branches_there_is_no_hw_index) {
    PdEvent e = {.attr = {.sample_type = PD_SAMPLE_BRANCH_STACK | PD_SAMPLE_DATA_SRC,
                          .branch_sample_type = PD_BRANCH_HW_INDEX}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdSample s;

    u64(&m, 0);
    u64(&m, 0x77);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_OK(pd_sample_parse(&r, &e, &s));
    CHECK_EQ(s.branches.n, 0U);
    CHECK(!s.branches.has_hw_index);
    CHECK_EQ(s.data_src, 0x77U);
}

TEST(branch_counters_of_another_event_of_the_group_are_found) {
    PdEvent e = {.attr = {.sample_type = PD_SAMPLE_BRANCH_STACK | PD_SAMPLE_DATA_SRC}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdSample s;

    u64(&m, 2);
    for (unsigned i = 0; i < 6; i++)
        u64(&m, i);
    u64(&m, 0xc0);
    u64(&m, 0xc1);
    u64(&m, 0x77);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_OK(pd_sample_parse(&r, &e, &s));
    CHECK(s.branches.has_counters);
    CHECK_EQ(pd_u64_at(&s.branches.counters, 1), 0xc1U);
    CHECK_EQ(s.data_src, 0x77U);
}

TEST(values_of_every_read_format_are_in_the_order_of_the_kernel) {
    for (uint64_t format = 0; format < 32; format++) {
        _cleanup_(make_done) Make m = {.swap = format & 1};
        bool group = format & PD_FORMAT_GROUP;
        unsigned n = group ? 3 : 1;
        PdRead read;
        Cursor c;

        u64(&m, group ? n : 500);
        if (format & PD_FORMAT_TOTAL_TIME_ENABLED)
            u64(&m, 11);
        if (format & PD_FORMAT_TOTAL_TIME_RUNNING)
            u64(&m, 12);
        for (unsigned i = 0; i < n; i++) {
            if (group)
                u64(&m, 500 + i);
            if (format & PD_FORMAT_ID)
                u64(&m, 600 + i);
            if (format & PD_FORMAT_LOST)
                u64(&m, 700 + i);
        }
        c = cursor_of(m.body.data, m.body.size, m.swap);
        pd_read_parse(&c, format, &read);
        CHECK(!c.failed);
        CHECK_EQ(cursor_left(&c), (size_t)0);
        CHECK_EQ(read.n, n);
        CHECK_EQ(read.time_enabled, format & PD_FORMAT_TOTAL_TIME_ENABLED ? 11U : 0U);
        CHECK_EQ(read.time_running, format & PD_FORMAT_TOTAL_TIME_RUNNING ? 12U : 0U);
        for (unsigned i = 0; i < n; i++) {
            PdReadValue v = pd_read_at(&read, i);

            CHECK_EQ(v.value, 500 + i);
            CHECK_EQ(v.id, format & PD_FORMAT_ID ? 600 + i : 0);
            CHECK_EQ(v.lost, format & PD_FORMAT_LOST ? 700 + i : 0);
        }
    }
}

static const char *described(const PdRecord *r, const PdEvent *event, const PdTracing *tracing) {
    static Buffer b;
    PdStamp stamp = {.event = event};
    Fields f;

    buffer_clear(&b);
    f = fields_to(&b, FIELDS_TEXT);
    fields_begin_object(&f, NULL);
    pd_record_describe(r, &stamp, tracing, &f);
    fields_end_object(&f);
    text_putc(&b, '\0');
    assert(buffer_error(&b) == 0);
    return (const char *)b.data;
}

TEST(every_field_is_described_in_both_byte_orders) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord r;

        make_everything(&m);
        r = make_record(&m, PD_RECORD_SAMPLE, PD_MISC_USER | PD_MISC_EXACT_IP);
        CHECK_STREQ(described(&r, &everything, NULL),
                    "type SAMPLE offset 0 size 384 misc 0x4002 cpumode user exact_ip yes "
                    "ip 0xffffffff81000000 addr 0xadd5 stream_id 87 period 4001 "
                    "read {time_enabled 100 time_running 50 "
                    "values [{value 1000 id 70 lost 5} {value 1001 id 71 lost 6}]} "
                    "chain [PERF_CONTEXT_USER 0x400123] raw 72617721 branch_hw_index 9 "
                    "branches [{from 0xf0 to 0x70 flags [mispredicted in_tx] cycles 300 type ret "
                    "spec spec_wrong_path priv kernel counters 0xc0}] "
                    "user_regs {abi 64-bit mask 0x8000000000000003 r0 0x10 r1 0x11 r63 0x12} "
                    "user_stack {size 16 dyn_size 8 bytes 737461636b206f66} "
                    "weight 1 ins_lat 2 weight3 3 "
                    "data_src {value 0x1e op [load store prefetch exec]} "
                    "transaction [elision transaction] abort_code 1 "
                    "intr_regs {abi 32-bit mask 0x10 r4 0x99} phys_addr 0x1000 cgroup 198 "
                    "data_page_size 4096 code_page_size 2097152 aux 6175786461746138");
    }
}

TEST(a_sample_truncated_anywhere_is_described_as_bytes) {
    _cleanup_(make_done) Make m = {.swap = true};

    make_everything(&m);
    for (size_t n = 0; n < m.body.size; n++) {
        PdRecord r = make_cut(&m, PD_RECORD_SAMPLE, PD_MISC_USER, n);

        CHECK(strstr(described(&r, &everything, NULL), " error it does not hold "));
    }
}

TEST(the_memory_source_is_described_in_words) {
    PdEvent e = {.attr.sample_type = PD_SAMPLE_DATA_SRC};
    static const struct {
        uint64_t v;
        const char *expect;
    } rows[] = {
        {0, "data_src {value 0x0}"},
        {0x68100142, "data_src {value 0x68100142 op [load] level [hit l1] snoop [none] "
                     "tlb [hit l1 l2]}"},
        {0x9 | 1ULL << 37 | 9ULL << 33 | 2ULL << 38 | 2ULL << 40 | 3ULL << 43 | 7ULL << 46,
         "data_src {value 0x1dab200000009 op [na prefetch] level_num cxl remote 1 snoop [peer] "
         "blocked [data] hops socket region mmio}"},
        {1ULL << 24, "data_src {value 0x1000000 lock [na]}"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(make_done) Make m = {};
        PdRecord r;

        u64(&m, rows[i].v);
        r = make_record(&m, PD_RECORD_SAMPLE, 0);
        CHECK_STREQ(strstr(described(&r, &e, NULL), "data_src"), rows[i].expect);
    }
}

TEST(every_context_in_a_callchain_has_its_name) {
    PdEvent e = {.attr.sample_type = PD_SAMPLE_CALLCHAIN};
    static const uint64_t ips[] = {
        PD_CONTEXT_HV,
        PD_CONTEXT_KERNEL,
        0xffffffff81000000,
        PD_CONTEXT_USER,
        0x400000,
        PD_CONTEXT_GUEST,
        PD_CONTEXT_GUEST_USER,
        PD_CONTEXT_GUEST_KERNEL,
        PD_CONTEXT_USER_DEFERRED,
        0xc00c1e,
        PD_CONTEXT_MAX,
    };
    _cleanup_(make_done) Make m = {};
    PdRecord r;

    u64(&m, ARRAY_SIZE(ips));
    for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
        u64(&m, ips[i]);
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_STREQ(strstr(described(&r, &e, NULL), "chain"),
                "chain [PERF_CONTEXT_HV PERF_CONTEXT_KERNEL 0xffffffff81000000 PERF_CONTEXT_USER "
                "0x400000 PERF_CONTEXT_GUEST PERF_CONTEXT_GUEST_USER PERF_CONTEXT_GUEST_KERNEL "
                "PERF_CONTEXT_USER_DEFERRED 0xc00c1e 0xfffffffffffff001]");
}

TEST_MAIN()
