/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/cfi-expression.h"

#include <elf.h>

#include "unwind/compile/cfi-read.h"
#include "unwind/unwind-machine.h"

/*
 * An expression is compared with known shapes and never run:
 *   register + offset
 *   *(register + offset) + constant          realigned stacks, assembler sources of libcrypto
 *   sp + 8 + ((ip & 15) >= n) * 8            procedure linkage tables
 * and of saved registers, an offset from the frame pointer, beside which stacks are realigned.
 */

enum {
    OP_DEREF = 0x06,
    OP_AND = 0x1a,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    DWARF_SP_X86_64 = 7,
    DWARF_IP_X86_64 = 16,
};

static bool cfi_expression_base(Cursor *c, uint8_t *ret_register, int64_t *ret_offset) {
    uint8_t op = cursor_u8(c);

    *ret_offset = cfi_sleb(c);
    *ret_register = (uint8_t)(op - OP_BREG0);
    return !c->failed && op >= OP_BREG0 && op <= OP_BREG31;
}

/* A constant that is added at the end, or nothing. */
static bool cfi_expression_sum(Cursor *c, int64_t *ret) {
    uint8_t op;

    *ret = 0;
    if (cursor_left(c) == 0)
        return true;
    op = cursor_u8(c);
    if (op == OP_PLUS_UCONST) {
        uint64_t value = cfi_uleb(c);

        *ret = value <= INT32_MAX ? (int64_t)value : INT64_MAX;
    } else if (op >= OP_LIT0 && op <= OP_LIT31) {
        *ret = op - OP_LIT0;
        if (cursor_u8(c) != OP_PLUS)
            return false;
    } else {
        return false;
    }
    return !c->failed && cursor_left(c) == 0;
}

static bool cfi_expression_plt(Cursor c, UnwindRule *rule) {
    static const uint8_t begin[] = {
        OP_BREG0 + DWARF_SP_X86_64, 8, OP_BREG0 + DWARF_IP_X86_64, 0, OP_LIT0 + 15, OP_AND};
    static const uint8_t end[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
    const uint8_t *bytes = c.at;
    uint8_t low;

    if (cursor_left(&c) != sizeof(begin) + 1 + sizeof(end) ||
        memcmp(bytes, begin, sizeof(begin)) != 0 ||
        memcmp(bytes + sizeof(begin) + 1, end, sizeof(end)) != 0)
        return false;
    low = bytes[sizeof(begin)];
    if (low < OP_LIT0 || low > OP_LIT0 + 15)
        return false;
    rule->kind = UNWIND_PLT;
    rule->base = unwind_register_of_dwarf(EM_X86_64, DWARF_SP_X86_64);
    rule->offset = 8;
    rule->second = low - OP_LIT0;
    return true;
}

void cfi_expression_cfa(uint16_t machine, Bytes expression, UnwindRule *rule) {
    Cursor c = cursor_of(expression.data, expression.size, false);
    int64_t offset, second = 0;
    bool is_indirect;
    uint8_t base;

    rule->kind = UNWIND_NONE;
    if (machine == EM_X86_64 && cfi_expression_plt(c, rule))
        return;
    if (!cfi_expression_base(&c, &base, &offset) || offset < INT32_MIN || offset > INT32_MAX)
        return;
    is_indirect = cursor_left(&c) > 0;
    if (is_indirect && (cursor_u8(&c) != OP_DEREF || !cfi_expression_sum(&c, &second)))
        return;
    rule->base = unwind_register_of_dwarf(machine, base);
    if (rule->base == UNWIND_NO_REGISTER || second > INT32_MAX)
        return;
    rule->kind = is_indirect ? UNWIND_DEREF : UNWIND_OFFSET;
    rule->offset = (int32_t)offset;
    rule->second = (int32_t)second;
}

int16_t cfi_expression_saved(uint16_t machine, Bytes expression) {
    Cursor c = cursor_of(expression.data, expression.size, false);
    int64_t offset;
    uint8_t base;

    if (!cfi_expression_base(&c, &base, &offset) || cursor_left(&c) > 0 ||
        unwind_register_of_dwarf(machine, base) != unwind_machine(machine)->fp)
        return UNWIND_UNKNOWN;
    return unwind_saved_at_pointer(offset);
}
