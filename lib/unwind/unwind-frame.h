/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A frame of a walk, the registers known in it, and how words are read from the copy of its
 * stack. */

#include "unwind/unwind-table.h"

typedef struct UnwindFrame {
    const UnwindMachine *machine;
    Bytes stack;
    uint64_t stack_at; /* the address of its first byte */
    uint64_t floor;    /* the caller's frame begins above this address */
    uint64_t known;    /* a bit for each register */
    uint64_t registers[UNWIND_REGISTERS];
    bool is_exact; /* the ip is that of an instruction, not a return address */
} UnwindFrame;

/* The result of one step to the caller. The frame changes only if the step succeeds. */
typedef enum UnwindStep {
    UNWIND_STEPPED,
    UNWIND_STEP_END,     /* there is no caller */
    UNWIND_STEP_BEYOND,  /* it needs a word that lies above the copy of the stack */
    UNWIND_STEP_BELOW,   /* it needs a word below the frame, or anywhere else */
    UNWIND_STEP_UNKNOWN, /* it needs a register that is not known */
} UnwindStep;

enum { UNWIND_STACK_MAX = 1 << 27 }; /* what a copy is a part of, in bytes, at most */

static inline bool unwind_is_known(const UnwindFrame *frame, uint8_t reg) {
    return reg < UNWIND_REGISTERS && frame->known >> reg & 1;
}

static inline void unwind_set(UnwindFrame *frame, uint8_t reg, uint64_t value) {
    frame->registers[reg] = value;
    frame->known |= 1ULL << reg;
}

static inline UnwindStep unwind_load(const UnwindFrame *frame, uint64_t address, uint64_t *ret) {
    uint64_t offset = address - frame->stack_at;

    if (frame->stack.size < 8 || offset > frame->stack.size - 8)
        return offset < UNWIND_STACK_MAX ? UNWIND_STEP_BEYOND : UNWIND_STEP_BELOW;
    *ret = load_u64(frame->stack.data + offset, false);
    return UNWIND_STEPPED;
}

/* To the caller by a rule of a table. */
UnwindStep unwind_step(UnwindFrame *frame, const UnwindRule *rule);
