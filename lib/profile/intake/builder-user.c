/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "profile/intake/builder-private.h"

/*
 * The user part of a stack that is not in the call chain. A copy of the stack is unwound by tables
 * that the caller of the builder has. Branches that the CPU recorded as a stack of calls (perf
 * record --call-graph lbr) have the callers as the instructions that called; other branches are
 * used like that if there is no chain.
 */

void builder_words_begin(ProfileBuilder *builder, PdSample *sample) {
    sample->callchain = (PdCallchain){.data = (const uint8_t *)builder->words};
}

void builder_words_add(ProfileBuilder *builder, PdSample *sample, uint64_t word) {
    if (sample->callchain.n < CHAIN_WORDS_MAX)
        builder->words[sample->callchain.n++] = word;
}

/* Copies the chain up to its user part. */
static void builder_user_begin(ProfileBuilder *builder, PdSample *sample) {
    PdCallchain chain = sample->callchain;

    builder_words_begin(builder, sample);
    for (uint64_t i = 0; i < chain.n && pd_u64_at(&chain, i) != CONTEXT_USER; i++)
        builder_words_add(builder, sample, pd_u64_at(&chain, i));
    builder_words_add(builder, sample, CONTEXT_USER);
}

static void builder_user_take_branches(ProfileBuilder *builder, unsigned cpumode,
                                       PdSample *sample) {
    const PdBranches *branches = &sample->branches;

    builder_user_begin(builder, sample);
    if (cpumode == PD_MISC_USER)
        builder_words_add(builder, sample, sample->ip);
    else
        builder_words_add(builder, sample, pd_branch_at(branches, 0).to);
    for (uint64_t i = 0; i < branches->n; i++)
        builder_words_add(builder, sample, pd_branch_at(branches, i).from);
    builder->has_exact = true;
}

typedef struct UserSpace {
    ProfileBuilder *builder;
    FrameSpace space;
} UserSpace;

static void builder_user_ask_table(ProfileBuilder *builder, MappingSlot *slot) {
    const ProfileOptions *options = &builder->options;

    slot->is_asked = true;
    if (options->unwind_table(frame_table_mapping(builder->profile->frames, slot->mapping),
                              &slot->table, options->unwind_arg) < 0)
        slot->table = NULL;
}

static void builder_user_find(void *userdata, uint64_t address, UnwindMapping *ret) {
    UserSpace *user = userdata;
    const ProcessMapping *mapping = user->space.maps ? maps_find(user->space.maps, address) : NULL;
    MappingSlot *slot;

    *ret = (UnwindMapping){.code = UNWIND_CODE_NONE};
    if (!mapping || builder_mapping(user->builder, &user->space, mapping, &slot) < 0)
        return;
    *ret =
        (UnwindMapping){.start = mapping->start, .end = mapping->end, .code = UNWIND_CODE_REFUSED};
    if (slot->kind == FRAME_JIT) {
        ret->code = UNWIND_CODE_ANONYMOUS;
        return;
    }
    if (!slot->is_asked)
        builder_user_ask_table(user->builder, slot);
    if (slot->table && unwind_table_bias(slot->table, mapping->start, mapping->end - mapping->start,
                                         mapping->pgoff, &ret->bias) == 0) {
        ret->code = UNWIND_CODE_TABLE;
        ret->table = slot->table;
    }
}

static void builder_user_unwind(ProfileBuilder *builder, PdSample *sample) {
    UserSpace user = {.builder = builder, .space = builder_space(builder, sample, PD_MISC_USER)};
    const UnwindSpace space = {
        .find = builder_user_find, .userdata = &user, .version = user.space.version};
    const UnwindSample from = {
        .machine = builder->machine,
        .abi = sample->user_regs.abi,
        .mask = sample->user_regs.mask,
        .registers = {.data = sample->user_regs.values.data,
                      .size = sample->user_regs.values.n * sizeof(uint64_t)},
        .stack = sample->user_stack,
    };
    UnwindChain chain;

    (void)unwind_walk(&from, &space, builder->cache, &chain);
    if (chain.n == 0)
        return;
    builder_user_begin(builder, sample);
    for (unsigned i = 0; i < chain.n; i++)
        builder_words_add(builder, sample, chain.addresses[i]);
}

/* A stack that perf could unwind: registers, and in the byte order of this host. */
static bool builder_user_has_stack(const ProfileBuilder *builder, const PdRecord *record,
                                   const PdSample *sample) {
    return builder->options.unwind_table && builder->machine != 0 && !record->swap &&
           sample->user_regs.abi != 0 && sample->user_stack.size > 0;
}

int builder_user(ProfileBuilder *builder, const PdRecord *record, PdSample *sample) {
    bool is_call_stack = sample->event->attr.branch_sample_type & PD_BRANCH_CALL_STACK;

    builder->has_exact = false;
    if (builder_user_has_stack(builder, record, sample)) {
        if (!builder->cache)
            builder->cache = calloc(1, sizeof(*builder->cache));
        if (!builder->cache)
            return -ENOMEM;
        builder_user_unwind(builder, sample);
    } else if (sample->branches.n > 0 &&
               (is_call_stack || (builder->options.callers_in_branch && sample->callchain.n == 0)))
        builder_user_take_branches(builder, record->misc & PD_MISC_CPUMODE_MASK, sample);
    return 0;
}
