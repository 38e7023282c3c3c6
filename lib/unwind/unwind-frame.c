/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind-frame.h"

#include "util/macro.h"

/*
 * One step to the caller by a rule: first the CFA, then the registers saved around it. Whatever the
 * rule is, only words of the copy of the stack are read, and each frame must be above the previous
 * one.
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
    int16_t saved = rule->saved[0];
    UnwindStep step = UNWIND_STEPPED;

    if (unwind_saved_is_at_cfa(saved)) {
        step = unwind_load(frame, cfa + (uint64_t)unwind_saved_distance(saved), ret);
    } else {
        /* A function that has called another one has overwritten its link register. */
        if (saved != UNWIND_SAME || !frame->is_exact || !unwind_is_known(frame, machine->link))
            return UNWIND_STEP_UNKNOWN;
        *ret = frame->registers[machine->link];
    }
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

/* A register of the caller that the callee has saved; false where it is not known. */
static bool unwind_frame_saved(const UnwindFrame *frame, int16_t saved, uint64_t cfa,
                               uint64_t *ret) {
    uint8_t fp = frame->machine->fp, other = unwind_saved_register(saved);
    uint64_t from = cfa;

    if (saved == UNWIND_UNKNOWN)
        return false;
    if (other != UNWIND_NO_REGISTER) {
        *ret = frame->registers[other % UNWIND_REGISTERS];
        return unwind_is_known(frame, other);
    }
    if (!unwind_saved_is_at_cfa(saved)) {
        if (!unwind_is_known(frame, fp))
            return false;
        from = frame->registers[fp];
    }
    return unwind_load(frame, from + (uint64_t)unwind_saved_distance(saved), ret) == UNWIND_STEPPED;
}

static void unwind_frame_restore(UnwindFrame *frame, const UnwindRule *rule, uint64_t cfa) {
    const UnwindMachine *machine = frame->machine;
    uint64_t values[UNWIND_SAVED], kept = 0;
    unsigned n;

    for (n = 1; n < UNWIND_SAVED && machine->saved[n] != UNWIND_NO_REGISTER; n++) {
        uint8_t reg = machine->saved[n];

        values[n] = frame->registers[reg];
        if (rule->saved[n] == UNWIND_SAME
                ? unwind_is_known(frame, reg)
                : unwind_frame_saved(frame, rule->saved[n], cfa, &values[n]))
            kept |= 1ULL << reg;
    }
    for (unsigned i = 1; i < n; i++)
        frame->registers[machine->saved[i]] = values[i];
    frame->known = kept;
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
