/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A made-up address space for walks: a file with a table of given rules, code of no file, a file
 * whose table is not there, one that was refused, and a stack of given words.
 */

#include <elf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/compile/table-build.h"
#include "unwind/unwind.h"
#include "util/macro.h"

enum {
    /* Addresses, each with 64K of code. */
    WALK_FILE = 0x400000,
    WALK_ANONYMOUS = 0x500000,
    WALK_PENDING = 0x600000,
    WALK_REFUSED = 0x700000,
    WALK_SIZE = 0x10000,
    WALK_STACK = 0x7ff000,
    WALK_WORDS_MAX = 256,
    WALK_RULE_SIZE = 0x100, /* rule i begins at WALK_FILE + i * this */
};

typedef struct MadeWalk {
    uint16_t machine;
    UnwindTable table;
    Buffer image;
    uint64_t registers[UNWIND_REGISTERS];
    uint64_t words[WALK_WORDS_MAX];
    size_t n_words;
    uint64_t version;
    unsigned n_finds;
    UnwindChain chain;
} MadeWalk;

static inline void made_walk_find(void *userdata, uint64_t address, UnwindMapping *ret) {
    static const UnwindCode codes[] = {UNWIND_CODE_TABLE, UNWIND_CODE_ANONYMOUS,
                                       UNWIND_CODE_PENDING, UNWIND_CODE_REFUSED};
    MadeWalk *walk = userdata;

    walk->n_finds++;
    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        uint64_t start = WALK_FILE + i * 0x100000ULL;

        if (address >= start && address < start + WALK_SIZE)
            *ret = (UnwindMapping){.start = start,
                                   .end = start + WALK_SIZE,
                                   .code = codes[i],
                                   .table = &walk->table,
                                   .bias = WALK_FILE};
    }
}

/* Rules, each for WALK_RULE_SIZE bytes of the file; then no rule. */
static inline void made_walk_init(MadeWalk *walk, uint16_t machine, const UnwindRule *rules,
                                  size_t n) {
    TableBuild build;
    UnwindRule none = {};
    int r;

    *walk = (MadeWalk){.machine = machine};
    r = table_build_init(&build, machine, 0, WALK_SIZE - 1);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = table_build_row(&build, i * WALK_RULE_SIZE, &rules[i]);
    if (r == 0)
        r = table_build_row(&build, n * WALK_RULE_SIZE, &none);
    if (r == 0)
        r = table_build_image(&build, NULL, 0, 1 << 20, &walk->image);
    if (r < 0 || unwind_table_open(buffer_bytes(&walk->image), &walk->table) < 0)
        abort();
    table_build_done(&build);
    walk->registers[unwind_machine(machine)->sp] = WALK_STACK;
}

static inline void made_walk_done(MadeWalk *walk) {
    buffer_done(&walk->image);
}

static inline UnwindVerdict made_walk_run(MadeWalk *walk, UnwindCache *cache) {
    const UnwindMachine *machine = unwind_machine(walk->machine);
    uint64_t registers[UNWIND_REGISTERS], mask = 0;
    UnwindSpace space = {.find = made_walk_find, .userdata = walk, .version = walk->version};
    size_t n = 0;

    for (unsigned i = 0; i < machine->n_registers; i++) {
        /* x86-64 has no segment registers for us. */
        if (machine->machine == EM_X86_64 && i > 8 && i < 16)
            continue;
        mask |= 1ULL << i;
        registers[n++] = walk->registers[i];
    }
    return unwind_walk(
        &(UnwindSample){.machine = walk->machine,
                        .abi = PERF_SAMPLE_REGS_ABI_64,
                        .mask = mask,
                        .registers = {.data = (const void *)registers, .size = n * 8},
                        .stack = {.data = (const void *)walk->words, .size = walk->n_words * 8}},
        &space, cache, &walk->chain);
}

/* An address in the middle of the code of a rule. */
static inline uint64_t code_of(unsigned rule) {
    return WALK_FILE + rule * WALK_RULE_SIZE + WALK_RULE_SIZE / 2;
}

static inline uint64_t stack_at(size_t word) {
    return WALK_STACK + word * 8;
}

static inline void set_words(MadeWalk *walk, const uint64_t *words, size_t n) {
    memcpy(walk->words, words, n * sizeof(*words));
    walk->n_words = n;
}

#define WORDS(walk, ...)                                                                           \
    set_words((walk), (const uint64_t[]){__VA_ARGS__},                                             \
              sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* The chain is the ip and these addresses. */
static inline bool is_chain(const MadeWalk *walk, const uint64_t *addresses, size_t n) {
    return walk->chain.n == n &&
           memcmp(walk->chain.addresses, addresses, n * sizeof(*addresses)) == 0;
}

#define CHAIN(walk, ...)                                                                           \
    is_chain((walk), (const uint64_t[]){__VA_ARGS__},                                              \
             sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
