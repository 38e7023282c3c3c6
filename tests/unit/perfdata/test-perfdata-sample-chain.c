/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/sample-chain.h"

#include "make-record.h"
#include "test.h"

/* A sample with a copy of the user stack becomes one with a call chain. */

enum { USER_TYPES = PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER };

static const PdEvent taken = {
    .attr =
        {
            .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_CALLCHAIN |
                           PD_SAMPLE_RAW | PD_SAMPLE_WEIGHT | PD_SAMPLE_CGROUP | USER_TYPES,
            .sample_regs_user = 7,
            .sample_stack_user = 16,
        },
};

/* Frames of the kernel and of a program, each with their context; `copied` bytes of 16 of the
 * stack, all of it secret. */
static PdRecord make_mixed(Make *m, unsigned kernel_frames, unsigned user_frames, size_t raw,
                           size_t copied) {
    u64(m, 0xabc);
    u64(m, 0x401000);
    u64(m, kernel_frames + user_frames);
    for (unsigned i = 0; i < kernel_frames; i++)
        u64(m, i == 0 ? PD_CONTEXT_KERNEL : 0xffffffff81000000 + i);
    for (unsigned i = 0; i < user_frames; i++)
        u64(m, i == 0 ? PD_CONTEXT_USER : 0x700000 + i);
    u32(m, (uint32_t)raw);
    for (size_t i = 0; i < raw; i++)
        u8(m, (uint8_t)i);
    u64(m, 2); /* 64-bit registers */
    for (unsigned i = 0; i < 3; i++)
        u64(m, 0x5ec2e7);
    u64(m, copied > 0 ? 16 : 0);
    if (copied > 0) {
        text(m, "secret", 16);
        u64(m, copied);
    }
    u64(m, 77);
    u64(m, 4242);
    return make_record(m, PD_RECORD_SAMPLE, PD_MISC_USER);
}

static PdRecord make_sample(Make *m, unsigned kernel_frames, size_t raw, size_t copied) {
    return make_mixed(m, kernel_frames, 0, raw, copied);
}

static void unwind(const PdRecord *record, const uint64_t *addresses, size_t n, Buffer *out,
                   PdSample *ret) {
    PdEvent stored = taken;
    PdRecord result;

    stored.attr.sample_type &= ~(uint64_t)USER_TYPES;
    CHECK_EQ(pd_sample_parse(record, &taken, ret), 0);
    pd_sample_append_unwound(out, record, ret, addresses, n);
    result = pd_record_at(out->data, record->swap);
    CHECK_EQ(result.size, out->size);
    CHECK_EQ(result.misc, PD_MISC_USER);
    CHECK(pd_sample_is_whole(&result, &stored));
    CHECK_EQ(pd_sample_parse(&result, &stored, ret), 0);
    CHECK(!memmem(out->data, out->size, "secret", 6));
}

TEST(a_user_chain_is_added_after_the_kernel_chain_and_other_fields_stay) {
    static const uint64_t addresses[] = {0x401000, 0x402000, 0x403000};

    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer out = {};
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord record = make_sample(&m, 3, 12, 8);
        PdSample s;

        unwind(&record, addresses, 3, &out, &s);
        CHECK_EQ(s.callchain.n, 7);
        CHECK_EQ(pd_u64_at(&s.callchain, 0), PD_CONTEXT_KERNEL);
        CHECK_EQ(pd_u64_at(&s.callchain, 3), PD_CONTEXT_USER);
        CHECK_EQ(pd_u64_at(&s.callchain, 6), 0x403000);
        CHECK_EQ(s.raw.size, 12);
        CHECK_EQ(s.weight, 77);
        CHECK_EQ(s.cgroup, 4242);
    }
}

TEST(a_user_chain_replaces_the_one_by_frame_pointers) {
    static const uint64_t addresses[] = {0x401000, 0x402000};
    _cleanup_(buffer_done) Buffer out = {}, kept = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record = make_mixed(&m, 3, 5, 12, 8);
    PdSample s;

    unwind(&record, addresses, 2, &out, &s);
    CHECK_EQ(s.callchain.n, 6);
    CHECK_EQ(pd_u64_at(&s.callchain, 2), 0xffffffff81000002);
    CHECK_EQ(pd_u64_at(&s.callchain, 3), PD_CONTEXT_USER);
    CHECK_EQ(pd_u64_at(&s.callchain, 5), 0x402000);
    CHECK_EQ(s.raw.size, 12);
    CHECK_EQ(s.cgroup, 4242);
    unwind(&record, NULL, 0, &kept, &s);
    CHECK_EQ(s.callchain.n, 8);
    CHECK_EQ(pd_u64_at(&s.callchain, 7), 0x700004);
}

TEST(without_a_user_chain_only_the_kernel_chain_is_stored) {
    _cleanup_(buffer_done) Buffer out = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record = make_sample(&m, 2, 4, 0);
    PdSample s;

    unwind(&record, NULL, 0, &out, &s);
    CHECK_EQ(s.callchain.n, 2);
    CHECK_EQ(pd_u64_at(&s.callchain, 0), PD_CONTEXT_KERNEL);
    CHECK_EQ(s.cgroup, 4242);
}

TEST(a_chain_that_is_too_long_for_a_record_loses_its_outermost_frames) {
    _cleanup_(buffer_done) Buffer out = {};
    _cleanup_(make_done) Make m = {};
    uint64_t addresses[127];
    PdRecord record = make_sample(&m, 0, 65404, 8);
    PdSample s;

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        addresses[i] = 0x400000 + i;
    unwind(&record, addresses, ARRAY_SIZE(addresses), &out, &s);
    CHECK(out.size <= UINT16_MAX && out.size % 8 == 0);
    CHECK(s.callchain.n > 2 && s.callchain.n < ARRAY_SIZE(addresses));
    CHECK_EQ(pd_u64_at(&s.callchain, 1), 0x400000);
    CHECK_EQ(s.raw.size, 65404);
}

TEST_MAIN()
