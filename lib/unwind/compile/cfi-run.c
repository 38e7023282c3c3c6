/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/cfi-run.h"

#include <errno.h>

#include "unwind/compile/cfi-expression.h"
#include "unwind/compile/unwind-limit.h"
#include "unwind/unwind-machine.h"

/*
 * The instructions of "DWARF 5, 6.4.2" and the GNU ones. A state is one rule, which instructions
 * change piece by piece; a row is complete when the location advances. What a rule cannot express,
 * a register saved in a register or a CFA by an unusual expression, becomes unknown. Only registers
 * that a rule may restore are tracked.
 */

enum {
    CFA_ADVANCE = 0x40, /* with an operand in the low six bits, as the next two */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_HIGH = 0xc0,
    CFA_NOP = 0,
    CFA_SET_LOC,
    CFA_ADVANCE_1,
    CFA_ADVANCE_2,
    CFA_ADVANCE_4,
    CFA_OFFSET_EXTENDED,
    CFA_RESTORE_EXTENDED,
    CFA_UNDEFINED,
    CFA_SAME_VALUE,
    CFA_REGISTER,
    CFA_REMEMBER_STATE,
    CFA_RESTORE_STATE,
    CFA_DEF_CFA,
    CFA_DEF_CFA_REGISTER,
    CFA_DEF_CFA_OFFSET,
    CFA_DEF_CFA_EXPRESSION,
    CFA_EXPRESSION,
    CFA_OFFSET_EXTENDED_SF,
    CFA_DEF_CFA_SF,
    CFA_DEF_CFA_OFFSET_SF,
    CFA_VAL_OFFSET,
    CFA_VAL_OFFSET_SF,
    CFA_VAL_EXPRESSION,
    CFA_NEGATE_RA_STATE_WITH_PC = 0x2c,
    CFA_NEGATE_RA_STATE = 0x2d,
    CFA_ARGS_SIZE = 0x2e,
    CFA_NEGATIVE_OFFSET_EXTENDED = 0x2f,
    SIGNAL_SP_X86_64 = 160, /* of the interrupted code, in the ucontext at sp */
};

typedef struct CfiRun {
    const CfiSection *section;
    const CfiCie *cie;
    CfiState state;
    unsigned n_remembered;
    CfiState remembered[UNWIND_REMEMBERED_MAX];
    uint64_t pc, next_pc; /* next_pc > pc: the row of pc is complete */
    bool is_bad;
} CfiRun;

/* The place of a register in UnwindRule.saved, or NULL: no rule restores it. */
static int16_t *cfi_run_saved(CfiRun *run, UnwindRule *rule, uint64_t number) {
    const UnwindMachine *machine = unwind_machine(run->section->machine);
    uint8_t reg = unwind_register_of_dwarf(machine->machine, number);

    if (number == run->cie->return_register)
        return &rule->saved[0];
    for (unsigned i = 1; i < UNWIND_SAVED; i++)
        if (reg != UNWIND_NO_REGISTER && machine->saved[i] == reg)
            return &rule->saved[i];
    return NULL;
}

static void cfi_run_save(CfiRun *run, uint64_t number, int16_t saved) {
    int16_t *to = cfi_run_saved(run, &run->state.rule, number);

    if (to)
        *to = saved;
    if (number == run->cie->return_register)
        run->state.is_end = false;
}

static int64_t cfi_run_factored(const CfiRun *run, int64_t value) {
    int64_t product;

    return __builtin_mul_overflow(value, run->cie->data_align, &product) ? INT64_MAX : product;
}

static void cfi_run_save_at(CfiRun *run, uint64_t number, int64_t factored) {
    int16_t saved = unwind_saved_at_cfa(cfi_run_factored(run, factored));

    /* The word at the CFA itself belongs to the caller. */
    cfi_run_save(run, number, saved == UNWIND_SAME ? (int16_t)UNWIND_UNKNOWN : saved);
}

static void cfi_run_save_in(CfiRun *run, uint64_t number, uint64_t other) {
    uint8_t reg = unwind_register_of_dwarf(run->section->machine, other);

    cfi_run_save(run, number,
                 reg == UNWIND_NO_REGISTER ? (int16_t)UNWIND_UNKNOWN
                                           : unwind_saved_in_register(reg));
}

static void cfi_run_restore(CfiRun *run, uint64_t number) {
    UnwindRule initial = run->cie->initial.rule;
    const int16_t *from = cfi_run_saved(run, &initial, number);

    if (!from)
        return;
    cfi_run_save(run, number, *from);
    if (number == run->cie->return_register)
        run->state.is_end = run->cie->initial.is_end;
}

static void cfi_run_set_offset(CfiRun *run, int64_t offset) {
    UnwindRule *rule = &run->state.rule;

    if (rule->kind != UNWIND_OFFSET)
        return;
    if (offset < INT32_MIN || offset > INT32_MAX)
        rule->kind = UNWIND_NONE;
    rule->offset = (int32_t)offset;
}

static void cfi_run_set_base(CfiRun *run, uint64_t number) {
    UnwindRule *rule = &run->state.rule;

    rule->base = unwind_register_of_dwarf(run->section->machine, number);
    rule->kind = rule->base == UNWIND_NO_REGISTER ? UNWIND_NONE : UNWIND_OFFSET;
    rule->second = 0;
}

static void cfi_run_advance(CfiRun *run, uint64_t delta) {
    uint64_t bytes;

    if (__builtin_mul_overflow(delta, run->cie->code_align, &bytes) ||
        __builtin_add_overflow(run->pc, bytes, &run->next_pc))
        run->is_bad = true;
}

static void cfi_run_set_location(CfiRun *run, Cursor *c) {
    uint64_t here = cfi_section_address(run->section, c->at);

    run->next_pc = cfi_address(c, run->cie->encoding, here);
    run->is_bad |= run->next_pc < run->pc;
}

static void cfi_run_remember(CfiRun *run) {
    if (run->n_remembered == UNWIND_REMEMBERED_MAX)
        run->is_bad = true;
    else
        run->remembered[run->n_remembered++] = run->state;
}

static void cfi_run_recall(CfiRun *run) {
    if (run->n_remembered == 0)
        run->is_bad = true;
    else
        run->state = run->remembered[--run->n_remembered];
}

static Bytes cfi_run_block(Cursor *c) {
    return cursor_bytes(c, cfi_uleb(c));
}

/* Instructions on the CFA and on the location. */
static bool cfi_run_frame(CfiRun *run, uint8_t op, Cursor *c) {
    switch (op) {
    case CFA_SET_LOC:
        cfi_run_set_location(run, c);
        return true;
    case CFA_ADVANCE_1:
        cfi_run_advance(run, cursor_u8(c));
        return true;
    case CFA_ADVANCE_2:
        cfi_run_advance(run, cursor_u16(c));
        return true;
    case CFA_ADVANCE_4:
        cfi_run_advance(run, cursor_u32(c));
        return true;
    case CFA_DEF_CFA:
        cfi_run_set_base(run, cfi_uleb(c));
        cfi_run_set_offset(run, (int64_t)cfi_uleb(c));
        return true;
    case CFA_DEF_CFA_SF:
        cfi_run_set_base(run, cfi_uleb(c));
        cfi_run_set_offset(run, cfi_run_factored(run, cfi_sleb(c)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        cfi_run_set_base(run, cfi_uleb(c));
        return true;
    case CFA_DEF_CFA_OFFSET:
        cfi_run_set_offset(run, (int64_t)cfi_uleb(c));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        cfi_run_set_offset(run, cfi_run_factored(run, cfi_sleb(c)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        cfi_expression_cfa(run->section->machine, cfi_run_block(c), &run->state.rule);
        return true;
    default:
        return false;
    }
}

/* Instructions on one register. */
static bool cfi_run_register(CfiRun *run, uint8_t op, Cursor *c) {
    uint64_t number = cfi_uleb(c);

    switch (op) {
    case CFA_OFFSET_EXTENDED:
        cfi_run_save_at(run, number, (int64_t)cfi_uleb(c));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        cfi_run_save_at(run, number, cfi_sleb(c));
        return true;
    case CFA_NEGATIVE_OFFSET_EXTENDED:
        cfi_run_save_at(run, number, (int64_t)(0 - cfi_uleb(c)));
        return true;
    case CFA_RESTORE_EXTENDED:
        cfi_run_restore(run, number);
        return true;
    case CFA_UNDEFINED:
        cfi_run_save(run, number, UNWIND_UNKNOWN);
        run->state.is_end |= number == run->cie->return_register;
        return true;
    case CFA_SAME_VALUE:
        cfi_run_save(run, number, UNWIND_SAME);
        return true;
    case CFA_EXPRESSION:
        cfi_run_save(run, number, cfi_expression_saved(run->section->machine, cfi_run_block(c)));
        return true;
    case CFA_REGISTER:
        cfi_run_save_in(run, number, cfi_uleb(c));
        return true;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        (void)cfi_uleb(c);
        cfi_run_save(run, number, UNWIND_UNKNOWN);
        return true;
    case CFA_VAL_EXPRESSION:
        (void)cfi_run_block(c);
        cfi_run_save(run, number, UNWIND_UNKNOWN);
        return true;
    default:
        return false;
    }
}

static bool cfi_run_other(CfiRun *run, uint8_t op, Cursor *c) {
    switch (op) {
    case CFA_NOP:
    case CFA_NEGATE_RA_STATE: /* we clear the bits that sign an address wherever they are */
    case CFA_NEGATE_RA_STATE_WITH_PC:
        return true;
    case CFA_ARGS_SIZE:
        (void)cfi_uleb(c);
        return true;
    case CFA_REMEMBER_STATE:
        cfi_run_remember(run);
        return true;
    case CFA_RESTORE_STATE:
        cfi_run_recall(run);
        return true;
    default:
        return false;
    }
}

static void cfi_run_one(CfiRun *run, Cursor *c) {
    uint8_t op = cursor_u8(c), low = op & (uint8_t)~CFA_HIGH;

    switch (op & CFA_HIGH) {
    case CFA_ADVANCE:
        cfi_run_advance(run, low);
        break;
    case CFA_OFFSET:
        cfi_run_save_at(run, low, (int64_t)cfi_uleb(c));
        break;
    case CFA_RESTORE:
        cfi_run_restore(run, low);
        break;
    default:
        if (!cfi_run_frame(run, op, c) && !cfi_run_other(run, op, c) &&
            !cfi_run_register(run, op, c))
            run->is_bad = true;
    }
    run->is_bad |= c->failed;
}

/* The rule of a state, in the one form that each rule has. */
static UnwindRule cfi_run_rule(const CfiRun *run) {
    const UnwindMachine *machine = unwind_machine(run->section->machine);
    const UnwindRule *rule = &run->state.rule;
    bool is_x86_signal = rule->kind == UNWIND_DEREF && rule->base == machine->sp &&
                         rule->offset == SIGNAL_SP_X86_64 && rule->second == 0;

    if (run->state.is_end)
        return (UnwindRule){.kind = UNWIND_END};
    if (run->cie->is_signal && (is_x86_signal || machine->link != UNWIND_NO_REGISTER))
        return (UnwindRule){.kind = UNWIND_SIGNAL};
    if (rule->kind == UNWIND_NONE ||
        (rule->saved[0] != UNWIND_SAME && !unwind_saved_is_at_cfa(rule->saved[0])))
        return (UnwindRule){};
    return *rule;
}

void cfi_run_cie(const CfiSection *section, CfiCie *cie, uint64_t *steps) {
    CfiRun run = {.section = section, .cie = cie};
    Cursor c = cursor_of(cie->instructions.data, cie->instructions.size, false);

    while (cie->is_usable && !run.is_bad && cursor_left(&c) > 0 && *steps > 0) {
        --*steps;
        cfi_run_one(&run, &c);
    }
    cie->initial = run.state;
    cie->is_usable &= !run.is_bad && run.next_pc == 0;
}

int cfi_run_fde(const CfiSection *section, const CfiCie *cie, const CfiFde *fde, uint64_t *steps,
                CfiRow on_row, void *userdata) {
    CfiRun run = {.section = section,
                  .cie = cie,
                  .state = cie->initial,
                  .pc = fde->begin,
                  .next_pc = fde->begin};
    Cursor c = cursor_of(fde->instructions.data, fde->instructions.size, false);
    uint64_t end = fde->begin + fde->size;
    UnwindRule rule;
    int r = 0;

    while (r == 0 && cursor_left(&c) > 0 && run.pc < end) {
        if (*steps == 0)
            return -E2BIG;
        --*steps;
        cfi_run_one(&run, &c);
        if (run.is_bad)
            break;
        if (run.next_pc == run.pc)
            continue;
        rule = cfi_run_rule(&run);
        r = on_row(userdata, run.pc, &rule);
        run.pc = run.next_pc;
    }
    rule = run.is_bad ? (UnwindRule){} : cfi_run_rule(&run);
    return r == 0 && run.pc < end ? on_row(userdata, run.pc, &rule) : r;
}
