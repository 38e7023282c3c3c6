/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind-frame.h"

#include "util/macro.h"

/*
 * One step to the caller by a rule: first the CFA, then the registers that lie around it. Whatever
 * the rule says, only words of the copy of the stack are read, and frames lie one above the other.
 */

static UnwindStep unwind_frame_cfa(const UnwindFrame *frame, const UnwindRule *rule,
                                   uint64_t *ret_cfa) {
    uint64_t at;

    if (!unwind_is_known(frame, rule->base))
        return UNWIND_STEP_UNKNOWN;
    at = frame->registers[rule->base] + (uint64_t)(int64_t)rule->offset;
    if (rule->kind == UNWIND_DEREF) {
        UnwindStep step = unwind_load(frame, at, &at);

        *ret_cfa = at + (uint64_t)(int64_t)rule->second;
        return step;
    }
    if (rule->kind == UNWIND_PLT &&
        (int64_t)(frame->registers[frame->machine->ip] & 15) >= rule->second)
        at += 8;
    *ret_cfa = at;
    return UNWIND_STEPPED;
}

static UnwindStep unwind_frame_caller(const UnwindFrame *frame, const UnwindRule *rule,
                                      uint64_t cfa, uint64_t *ret) {
    const UnwindMachine *machine = frame->machine;
    UnwindStep step = UNWIND_STEPPED;

    if (rule->saved[0] == UNWIND_UNKNOWN || rule->saved[0] & 1)
        return UNWIND_STEP_UNKNOWN;
    if (rule->saved[0] != UNWIND_SAME) {
        step = unwind_load(frame, cfa + (uint64_t)(int64_t)rule->saved[0], ret);
    } else {
        /* A function that has called another one has overwritten its link register. */
        if (!frame->is_exact || !unwind_is_known(frame, machine->link))
            return UNWIND_STEP_UNKNOWN;
        *ret = frame->registers[machine->link];
    }
    if (step == UNWIND_STEPPED)
        *ret &= machine->address_mask;
    return step;
}

static UnwindStep unwind_frame_signal(UnwindFrame *frame) {
    const UnwindMachine *machine = frame->machine;
    uint64_t values[UNWIND_REGISTERS] = {}, known = 0, sp = frame->registers[machine->sp];

    if (!unwind_is_known(frame, machine->sp))
        return UNWIND_STEP_UNKNOWN;
    for (unsigned i = 0; i < machine->n_registers; i++) {
        UnwindStep step;

        if (machine->in_signal[i] == 0)
            continue;
        step = unwind_load(frame, sp + machine->in_signal[i], &values[i]);
        if (step != UNWIND_STEPPED)
            return step;
        known |= 1ULL << i;
    }
    memcpy(frame->registers, values, sizeof(values[0]) * machine->n_registers);
    frame->known = known;
    /* A handler on a stack of its own may lie above the code that it interrupted. */
    frame->floor = MAX(frame->floor, frame->registers[machine->sp]);
    frame->is_exact = true;
    return UNWIND_STEPPED;
}

/* Where the caller's register lies, or UINT64_MAX, where no word can be read. */
static uint64_t unwind_frame_at(int16_t saved, uint64_t fp, uint64_t cfa) {
    if (saved == UNWIND_UNKNOWN || (saved & 1 && fp == UINT64_MAX))
        return UINT64_MAX;
    return saved & 1 ? fp + (uint64_t)(int64_t)(saved - 1) : cfa + (uint64_t)(int64_t)saved;
}

static void unwind_frame_restore(UnwindFrame *frame, const UnwindRule *rule, uint64_t cfa) {
    const UnwindMachine *machine = frame->machine;
    uint64_t fp = unwind_is_known(frame, machine->fp) ? frame->registers[machine->fp] : UINT64_MAX;
    uint64_t kept = 0;

    for (unsigned i = 1; i < UNWIND_SAVED; i++) {
        uint8_t reg = machine->saved[i];
        uint64_t value;

        if (reg == UNWIND_NO_REGISTER)
            break;
        if (rule->saved[i] != UNWIND_SAME) {
            if (unwind_load(frame, unwind_frame_at(rule->saved[i], fp, cfa), &value) !=
                UNWIND_STEPPED)
                continue;
            unwind_set(frame, reg, value);
        }
        kept |= 1ULL << reg;
    }
    frame->known &= kept;
}

UnwindStep unwind_step(UnwindFrame *frame, const UnwindRule *rule) {
    const UnwindMachine *machine = frame->machine;
    uint64_t cfa, ip;
    UnwindStep step;

    if (rule->kind == UNWIND_END)
        return UNWIND_STEP_END;
    if (rule->kind == UNWIND_SIGNAL)
        return unwind_frame_signal(frame);
    step = unwind_frame_cfa(frame, rule, &cfa);
    if (step != UNWIND_STEPPED)
        return step;
    /* Only a function that has not used its stack yet shares its CFA with its sp. */
    if (cfa < frame->floor || (cfa == frame->floor && !frame->is_exact))
        return UNWIND_STEP_BELOW;
    step = unwind_frame_caller(frame, rule, cfa, &ip);
    if (step != UNWIND_STEPPED)
        return step;
    unwind_frame_restore(frame, rule, cfa);
    unwind_set(frame, machine->sp, cfa);
    unwind_set(frame, machine->ip, ip);
    frame->floor = cfa;
    frame->is_exact = false;
    return UNWIND_STEPPED;
}
