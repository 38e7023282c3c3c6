/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind.h"

#include <linux/perf_event.h>

#include "unwind/unwind-frame.h"
#include "util/hash.h"
#include "util/macro.h"

/*
 * The walk: look up the code of a frame, step to its caller by the rule of its table, and where
 * there is none by the frame pointer, until there is no caller or none can be found. An address
 * enters the chain when it is known to be code. The caller's address is that of the instruction
 * behind a call, which may be the first one of another function: so the byte before it is looked
 * up.
 */

enum { FETCHED_BYTES = 4096 }; /* of a stack, before the walk begins */

typedef struct Walk {
    const UnwindSpace *space;
    UnwindCache *cache;
    UnwindMapping mapping; /* the last one that was found */
    UnwindFrame frame;
    bool has_waited;  /* for a table, and frame pointers were taken meanwhile */
    bool leaves_copy; /* the frame pointer of this frame does */
} Walk;

static UnwindCode unwind_code(Walk *walk, uint64_t address) {
    UnwindMapping *m = &walk->mapping;

    if (m->code != UNWIND_CODE_NONE && address >= m->start && address < m->end)
        return m->code;
    *m = (UnwindMapping){};
    walk->space->find(walk->space->userdata, address, m);
    if (m->code == UNWIND_CODE_TABLE &&
        (!m->table || m->table->header.machine != walk->frame.machine->machine))
        m->code = UNWIND_CODE_REFUSED;
    return m->code;
}

/* The kind of code at an address, and its rule if it is of a file with a table. */
static UnwindCode unwind_look_up(Walk *walk, uint64_t address, UnwindRule *ret) {
    UnwindCacheEntry *entry = NULL;
    uint64_t version = walk->space->version;
    UnwindCode code;

    if (walk->cache && version != 0) {
        entry = &walk->cache->entries[hash_u64(version, address) % UNWIND_CACHE_SIZE];
        if (entry->version == version && entry->address == address) {
            walk->cache->hits++;
            *ret = entry->rule;
            return (UnwindCode)entry->code;
        }
        walk->cache->misses++;
    }
    code = unwind_code(walk, address);
    *ret = (UnwindRule){};
    if (code == UNWIND_CODE_TABLE)
        *ret = unwind_table_find(walk->mapping.table, address - walk->mapping.bias);
    if (entry && code != UNWIND_CODE_NONE && code != UNWIND_CODE_PENDING)
        *entry =
            (UnwindCacheEntry){.version = version, .code = code, .address = address, .rule = *ret};
    return code;
}

/* The caller by the frame pointer, if it looks like one in each respect. */
static UnwindStep unwind_by_pointer(Walk *walk) {
    UnwindFrame *frame = &walk->frame;
    const UnwindMachine *machine = frame->machine;
    uint64_t fp = frame->registers[machine->fp], outer, ip;
    UnwindStep step;

    if (!unwind_is_known(frame, machine->fp))
        return UNWIND_STEP_UNKNOWN;
    if (fp == 0)
        return UNWIND_STEP_END;
    if (fp % 8 != 0)
        return UNWIND_STEP_UNKNOWN;
    walk->leaves_copy = fp < frame->stack_at;
    if (fp < frame->floor)
        return UNWIND_STEP_UNKNOWN;
    step = unwind_load(frame, fp, &outer);
    if (step == UNWIND_STEPPED)
        step = unwind_load(frame, fp + 8, &ip);
    walk->leaves_copy |= step != UNWIND_STEPPED;
    if (step != UNWIND_STEPPED)
        return step;
    ip &= machine->address_mask;
    if (ip == 0)
        return UNWIND_STEP_END;
    if (unwind_code(walk, ip - 1) == UNWIND_CODE_NONE)
        return UNWIND_STEP_UNKNOWN;
    frame->known = 0;
    unwind_set(frame, machine->fp, outer);
    unwind_set(frame, machine->ip, ip);
    if (machine->frame_is_cfa)
        unwind_set(frame, machine->sp, fp + 16);
    frame->floor = fp + 16;
    frame->is_exact = false;
    return UNWIND_STEPPED;
}

/*
 * The code that CPython makes for each function under -X perf takes eight bytes of stack, calls the
 * interpreter and returns: the return address lies behind them, or at the sp where it is about to
 * take them or to return. Only an address in a file with a table is believed, and of two none.
 */
static UnwindStep unwind_by_trampoline(Walk *walk) {
    UnwindFrame *frame = &walk->frame;
    const UnwindMachine *machine = frame->machine;
    uint64_t sp = frame->registers[machine->sp], caller = 0, cfa = 0, kept = 0;

    if (!machine->frame_is_cfa || !unwind_is_known(frame, machine->sp))
        return UNWIND_STEP_UNKNOWN;
    for (unsigned skipped = frame->is_exact ? 0 : 8; skipped <= 8; skipped += 8) {
        uint64_t ip;

        if (unwind_load(frame, sp + skipped, &ip) != UNWIND_STEPPED || ip == 0 ||
            unwind_code(walk, ip - 1) != UNWIND_CODE_TABLE)
            continue;
        if (caller != 0)
            return UNWIND_STEP_UNKNOWN;
        caller = ip;
        cfa = sp + skipped + 8;
    }
    if (caller == 0)
        return UNWIND_STEP_UNKNOWN;
    for (unsigned i = 0; i < UNWIND_SAVED && machine->saved[i] != UNWIND_NO_REGISTER; i++)
        kept |= 1ULL << machine->saved[i];
    frame->known &= kept;
    unwind_set(frame, machine->sp, cfa);
    unwind_set(frame, machine->ip, caller);
    frame->floor = cfa;
    frame->is_exact = false;
    return UNWIND_STEPPED;
}

/*
 * On aarch64 the code that a signal handler returns to may have no rule. The kernel has put a copy
 * of the interrupted frame pointer and link register behind the frame of the signal, and lets the
 * frame pointer lead there: where both pairs are equal, this is such a frame.
 */
static bool unwind_is_signal(const UnwindFrame *frame) {
    const UnwindMachine *machine = frame->machine;
    uint64_t sp = frame->registers[machine->sp], fp = frame->registers[machine->fp];
    uint64_t outer, link, kept_outer, kept_link;

    return !frame->is_exact && machine->link != UNWIND_NO_REGISTER &&
           unwind_is_known(frame, machine->sp) && unwind_is_known(frame, machine->fp) &&
           fp > sp + machine->in_signal[machine->ip] &&
           unwind_load(frame, fp, &outer) == UNWIND_STEPPED &&
           unwind_load(frame, fp + 8, &link) == UNWIND_STEPPED &&
           unwind_load(frame, sp + machine->in_signal[machine->fp], &kept_outer) ==
               UNWIND_STEPPED &&
           unwind_load(frame, sp + machine->in_signal[machine->link], &kept_link) ==
               UNWIND_STEPPED &&
           link != 0 && outer == kept_outer && link == kept_link;
}

/* To the caller where no rule says how. */
static UnwindStep unwind_without_rule(Walk *walk, UnwindCode code) {
    UnwindStep step;

    if (unwind_is_signal(&walk->frame))
        return unwind_step(&walk->frame, &(UnwindRule){.kind = UNWIND_SIGNAL});
    step = unwind_by_pointer(walk);

    if (step != UNWIND_STEPPED && code == UNWIND_CODE_ANONYMOUS &&
        unwind_by_trampoline(walk) == UNWIND_STEPPED)
        return UNWIND_STEPPED;
    return step;
}

/* Code that has a rule says itself where the end is. Code without one may keep any value in the
 * frame pointer, and so its innermost frame is not the first of a thread because that is 0. */
static bool unwind_is_no_end(const UnwindRule *rule, const UnwindChain *chain) {
    return rule->kind == UNWIND_NONE ? chain->n == 1 : rule->kind != UNWIND_END;
}

/* Why there is no caller, when the step did not find one. */
static UnwindVerdict unwind_verdict(const Walk *walk, UnwindStep step, UnwindCode code) {
    /* clang-format off */
    static const UnwindVerdict of_code[] = {
        [UNWIND_CODE_NONE]      = UNWIND_NO_CODE,
        [UNWIND_CODE_TABLE]     = UNWIND_NO_RULE,
        [UNWIND_CODE_PENDING]   = UNWIND_PENDING,
        [UNWIND_CODE_REFUSED]   = UNWIND_REFUSED,
        [UNWIND_CODE_ANONYMOUS] = UNWIND_ANONYMOUS,
    };
    /* clang-format on */

    if (walk->has_waited)
        return UNWIND_PENDING;
    if (step == UNWIND_STEP_END)
        return UNWIND_WHOLE;
    if (step == UNWIND_STEP_BEYOND)
        return UNWIND_TRUNCATED;
    if (step == UNWIND_STEP_BELOW && code == UNWIND_CODE_TABLE)
        return UNWIND_STUCK;
    return of_code[code];
}

static UnwindVerdict unwind_frames(Walk *walk, UnwindChain *chain) {
    UnwindFrame *frame = &walk->frame;

    for (;;) {
        uint64_t ip = frame->registers[frame->machine->ip];
        UnwindStep step = UNWIND_STEP_UNKNOWN;
        UnwindRule rule;
        UnwindCode code;

        walk->leaves_copy = false;
        if (ip == 0 && chain->n > 0)
            return walk->has_waited ? UNWIND_PENDING : UNWIND_WHOLE;
        code = unwind_look_up(walk, frame->is_exact ? ip : ip - 1, &rule);
        if (code != UNWIND_CODE_NONE || chain->n == 0)
            chain->addresses[chain->n++] = ip;
        if (code == UNWIND_CODE_NONE)
            return unwind_verdict(walk, step, code);
        if (chain->n == UNWIND_FRAMES_MAX)
            return walk->has_waited ? UNWIND_PENDING : UNWIND_TRUNCATED;
        walk->has_waited |= code == UNWIND_CODE_PENDING;
        if (rule.kind != UNWIND_NONE)
            step = unwind_step(frame, &rule);
        if (step == UNWIND_STEP_UNKNOWN)
            step = unwind_without_rule(walk, code);
        if (step == UNWIND_STEP_END && unwind_is_no_end(&rule, chain))
            step = UNWIND_STEP_UNKNOWN;
        if (step != UNWIND_STEPPED)
            return unwind_verdict(walk, step, code);
    }
}

/* Registers of the sample by perf's numbers; false without those that a walk begins with. */
static bool unwind_take_registers(const UnwindSample *sample, UnwindFrame *frame) {
    const UnwindMachine *machine = frame->machine;
    uint64_t left = sample->mask;

    for (size_t i = 0; left != 0; i++, left &= left - 1) {
        uint8_t reg = (uint8_t)__builtin_ctzll(left);
        uint64_t value;

        if ((i + 1) * sizeof(value) > sample->registers.size)
            return false;
        value = load_u64(sample->registers.data + i * sizeof(value), false);
        /* In the kernel some are not at hand: old ones say all ones there. */
        if (reg < machine->n_registers && value != UINT64_MAX)
            unwind_set(frame, reg, value);
    }
    return unwind_is_known(frame, machine->ip);
}

/* The stack comes from memory, or from the caches of another CPU. Its first lines are asked for all
 * at once, since the walk would wait for one after the other. */
static void unwind_fetch(Bytes stack) {
    enum { LINE = 64 };

    for (size_t i = 0; i < MIN(stack.size, (size_t)FETCHED_BYTES); i += LINE)
        __builtin_prefetch(stack.data + i);
}

UnwindVerdict unwind_walk(const UnwindSample *sample, const UnwindSpace *space, UnwindCache *cache,
                          UnwindChain *ret) {
    Walk walk = {.space = space, .cache = cache};
    UnwindFrame *frame = &walk.frame;
    UnwindVerdict verdict;

    ret->n = 0;
    ret->leaves_copy = false;
    frame->machine = unwind_machine(sample->machine);
    if (!frame->machine || sample->abi == PERF_SAMPLE_REGS_ABI_NONE ||
        !unwind_take_registers(sample, frame))
        return UNWIND_NO_USER;
    if (sample->abi != PERF_SAMPLE_REGS_ABI_64 || !unwind_is_known(frame, frame->machine->sp)) {
        ret->addresses[ret->n++] = frame->registers[frame->machine->ip];
        return sample->abi == PERF_SAMPLE_REGS_ABI_32 ? UNWIND_32_BIT : UNWIND_NO_USER;
    }
    frame->stack = sample->stack;
    frame->stack_at = frame->floor = frame->registers[frame->machine->sp];
    frame->is_exact = true;
    unwind_fetch(sample->stack);
    verdict = unwind_frames(&walk, ret);
    ret->leaves_copy = walk.leaves_copy;
    return verdict;
}

const char *unwind_verdict_name(UnwindVerdict verdict) {
    /* clang-format off */
    static const char *const names[] = {
        [UNWIND_WHOLE]     = "whole",
        [UNWIND_TRUNCATED] = "truncated",
        [UNWIND_PENDING]   = "pending",
        [UNWIND_REFUSED]   = "refused",
        [UNWIND_NO_RULE]   = "noRule",
        [UNWIND_ANONYMOUS] = "anonymous",
        [UNWIND_NO_CODE]   = "noCode",
        [UNWIND_STUCK]     = "stuck",
        [UNWIND_32_BIT]    = "bits32",
        [UNWIND_NO_USER]   = "noUser",
    };
    /* clang-format on */
    static_assert(ARRAY_SIZE(names) == UNWIND_VERDICTS, "a name for each");

    return names[verdict];
}
