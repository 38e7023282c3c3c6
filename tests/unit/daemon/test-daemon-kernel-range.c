/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/kernel-range.h"

#include "perfdata/writer/emit.h"
#include "test.h"

/* Which range of the kernel's code holds an address. */

static void put_map(Buffer *out, uint64_t start, uint64_t length) {
    pd_emit_mmap(out, NULL, PD_MISC_KERNEL,
                 &(PdMmap){.start = start,
                           .length = length,
                           .filename = {.data = (const uint8_t *)"[m]", .size = 3}});
}

static void put_symbol(Buffer *out, uint64_t start, uint32_t length) {
    pd_emit_ksymbol(out, NULL,
                    &(PdKsymbol){.addr = start,
                                 .length = length,
                                 .name = {.data = (const uint8_t *)"bpf", .size = 3}});
}

TEST(addresses_are_found_in_ranges_and_not_between_them) {
    _cleanup_(kernel_ranges_done) KernelRanges ranges = {};
    _cleanup_(buffer_done) Buffer records = {};

    CHECK(!kernel_ranges_find(&ranges, 0x1000));
    /* In no order, as modules come. */
    for (uint64_t i = 0; i < 1000; i++)
        put_map(&records, 0x100000 + (i * 7 % 1000) * 0x1000, 0x800);
    CHECK_OK(kernel_ranges_read(&ranges, buffer_bytes(&records)));
    CHECK_EQ(ranges.n, 1000U);
    for (uint64_t i = 0; i < 1000; i++) {
        const KernelRange *found = kernel_ranges_find(&ranges, 0x100000 + i * 0x1000 + 0x7ff);

        CHECK(found);
        CHECK_EQ(found->start, 0x100000 + i * 0x1000);
        CHECK(!kernel_ranges_find(&ranges, 0x100000 + i * 0x1000 + 0x800));
    }
    CHECK(!kernel_ranges_find(&ranges, 0));
    CHECK(!kernel_ranges_find(&ranges, UINT64_MAX));
}

TEST(overlapping_and_adjacent_ranges_are_merged) {
    _cleanup_(kernel_ranges_done) KernelRanges ranges = {};
    _cleanup_(buffer_done) Buffer records = {};

    put_map(&records, 0x1000, 0x4000);
    put_symbol(&records, 0x2000, 0x100);
    put_symbol(&records, 0x5000, 0x100);
    put_map(&records, 0x9000, 0);
    CHECK_OK(kernel_ranges_read(&ranges, buffer_bytes(&records)));
    CHECK_EQ(ranges.n, 1U);
    CHECK(kernel_ranges_find(&ranges, 0x4fff));
    CHECK(kernel_ranges_find(&ranges, 0x50ff));
    CHECK(!kernel_ranges_find(&ranges, 0x5100));
    CHECK(!kernel_ranges_find(&ranges, 0x9000));
}

TEST(a_range_that_overflows_ends_at_the_last_address) {
    _cleanup_(kernel_ranges_done) KernelRanges ranges = {};
    _cleanup_(buffer_done) Buffer records = {};

    put_map(&records, UINT64_MAX - 0xfff, UINT64_MAX);
    put_map(&records, 0x1000, 0x1000);
    CHECK_OK(kernel_ranges_read(&ranges, buffer_bytes(&records)));
    CHECK(kernel_ranges_find(&ranges, UINT64_MAX - 1));
    CHECK(!kernel_ranges_find(&ranges, 0x800));
    CHECK(kernel_ranges_find(&ranges, 0x1fff));
}

TEST(a_truncated_record_ends_the_list) {
    _cleanup_(kernel_ranges_done) KernelRanges ranges = {};
    _cleanup_(buffer_done) Buffer records = {};

    put_map(&records, 0x1000, 0x1000);
    put_map(&records, 0x8000, 0x1000);
    CHECK_OK(kernel_ranges_read(&ranges, (Bytes){.data = records.data, .size = records.size - 8}));
    CHECK_EQ(ranges.n, 1U);
}

TEST_MAIN()
