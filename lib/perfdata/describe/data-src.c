/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/data-src.h"

/*
 * Where a memory access was served, as packed in union perf_mem_data_src: flags and small
 * enumerations in one number, which has the same layout in both byte orders. Parts without
 * information are omitted.
 */

static const char *const ops[] = {"na", "load", "store", "prefetch", "exec"};
static const char *const levels[] = {"na",
                                     "hit",
                                     "miss",
                                     "l1",
                                     "lfb",
                                     "l2",
                                     "l3",
                                     "ram",
                                     "remote_ram_1",
                                     "remote_ram_2",
                                     "remote_cache_1",
                                     "remote_cache_2",
                                     "io",
                                     "uncached"};
/* The five bits of snoop, then the two that were added later. */
static const char *const snoops[] = {"na", "none", "hit", "miss", "hitm", "forward", "peer"};
static const char *const locks[] = {"na", "locked"};
static const char *const tlbs[] = {"na", "hit", "miss", "l1", "l2", "walker", "os_fault"};
static const char *const blocks[] = {"na", "data", "addr"};
static const char *const level_numbers[] = {NULL,  "l1",  "l2",       "l3",  "l4", "l2_mhb",
                                            "msc", "l0",  "uncached", "cxl", "io", "any_cache",
                                            "lfb", "ram", "pmem",     "na"};
static const char *const hops[] = {NULL, "core", "node", "socket", "board"};
static const char *const regions[] = {NULL,
                                      "reserved",
                                      "local_shared",
                                      "local_non_shared",
                                      "other_io",
                                      "other_shared",
                                      "other_non_shared",
                                      "mmio",
                                      "mem0",
                                      "mem1",
                                      "mem2",
                                      "mem3",
                                      "mem4",
                                      "mem5",
                                      "mem6",
                                      "mem7"};

static uint64_t data_src_part(uint64_t v, unsigned at, unsigned bits) {
    return v >> at & ((1ULL << bits) - 1);
}

void data_src_describe(uint64_t v, Fields *f) {
    uint64_t snoop = data_src_part(v, 19, 5) | data_src_part(v, 38, 2) << 5;
    /* clang-format off */
    const struct {
        const char *name;
        uint64_t value;
        bool flags;
        const char *const *names;
        size_t n;
    } parts[] = {
        {"op",        data_src_part(v,  0,  5), true,  ops,           ARRAY_SIZE(ops)},
        {"level",     data_src_part(v,  5, 14), true,  levels,        ARRAY_SIZE(levels)},
        {"level_num", data_src_part(v, 33,  4), false, level_numbers, ARRAY_SIZE(level_numbers)},
        {"remote",    data_src_part(v, 37,  1), false, NULL,          0},
        {"snoop",     snoop,           true,  snoops,        ARRAY_SIZE(snoops)},
        {"lock",      data_src_part(v, 24,  2), true,  locks,         ARRAY_SIZE(locks)},
        {"tlb",       data_src_part(v, 26,  7), true,  tlbs,          ARRAY_SIZE(tlbs)},
        {"blocked",   data_src_part(v, 40,  3), true,  blocks,        ARRAY_SIZE(blocks)},
        {"hops",      data_src_part(v, 43,  3), false, hops,          ARRAY_SIZE(hops)},
        {"region",    data_src_part(v, 46,  5), false, regions,       ARRAY_SIZE(regions)},
    };
    /* clang-format on */

    fields_begin_object(f, "data_src");
    fields_hex(f, "value", v);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].value == 0)
            continue;
        if (parts[i].flags)
            fields_flags(f, parts[i].name, parts[i].value, parts[i].names, parts[i].n);
        else
            fields_choice(f, parts[i].name, parts[i].value, parts[i].names, parts[i].n);
    }
    fields_end_object(f);
}
