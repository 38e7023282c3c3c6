/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/cfi-run.h"

#include "make-elf.h"
#include "test.h"

/*
 * Instructions and expressions, one by one: a file with one function goes through the compiler, and
 * the rules of its addresses are looked at. The CIE says CFA = rsp + 8 and where the return address
 * lies.
 */

enum { AX, BX, CX, DX, SI, DI, BP, SP, RIP, R8 = 16, R12 = 20 };
enum { IN_RA, IN_BP, IN_BX, IN_R12 }; /* places in UnwindRule.saved */

/* The rule at `offset` of a function of 0x100 bytes with these instructions. */
static UnwindRule rule_of(uint64_t offset, const uint8_t *instructions, size_t n) {
    _cleanup_(buffer_done) Buffer image = {};
    MadeElf elf = {};
    UnwindTable table;
    size_t cie = made_cie(&elf.eh_frame, false);

    made_fde(&elf.eh_frame, false, cie, MADE_TEXT, 0x100, instructions, n);
    if (made_compile(&elf, &image, &table) < 0)
        return (UnwindRule){.kind = UINT8_MAX};
    return unwind_table_find(&table, MADE_TEXT + offset);
}

#define RULE(offset, ...)                                                                          \
    rule_of((offset), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

TEST(function_without_instructions_has_the_rule_of_its_cie) {
    UnwindRule rule = RULE(0xff, 0);

    CHECK_EQ(rule.kind, UNWIND_OFFSET);
    CHECK_EQ(rule.base, SP);
    CHECK_EQ(rule.offset, 8);
    CHECK_EQ(rule.saved[IN_RA], unwind_saved_at_cfa(-8));
    CHECK_EQ(rule.saved[IN_BP], UNWIND_SAME);
    CHECK_EQ(RULE(0x100, 0).kind, UNWIND_NONE);
}

TEST(push_and_frame_pointer_change_the_rule_at_their_address) {
#define PROLOGUE 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6
    UnwindRule rule = RULE(0, PROLOGUE);

    CHECK_EQ(rule.offset, 8);
    rule = RULE(1, PROLOGUE);
    CHECK_EQ(rule.base, SP);
    CHECK_EQ(rule.offset, 16);
    CHECK_EQ(rule.saved[IN_BP], unwind_saved_at_cfa(-16));
    CHECK_EQ(RULE(3, PROLOGUE).base, SP);
    rule = RULE(4, PROLOGUE);
    CHECK_EQ(rule.base, BP);
    CHECK_EQ(rule.offset, 16);
    CHECK_EQ(RULE(0xff, PROLOGUE).base, BP);
}

TEST(every_advance_instruction_moves_by_its_own_unit) {
    CHECK_EQ(RULE(0x0f, 0x02, 0x10, 0x0e, 16).offset, 8);
    CHECK_EQ(RULE(0x10, 0x02, 0x10, 0x0e, 16).offset, 16);
    CHECK_EQ(RULE(0x80, 0x03, 0x80, 0, 0x0e, 16).offset, 16);
    CHECK_EQ(RULE(0x90, 0x04, 0x90, 0, 0, 0, 0x0e, 16).offset, 16);
    /* set_loc, an address as the CIE encodes it. */
    CHECK_EQ(RULE(0x1f, 0x01, 0x20, 0x10, 0x40, 0, 0, 0, 0, 0, 0x0e, 16).offset, 8);
    CHECK_EQ(RULE(0x20, 0x01, 0x20, 0x10, 0x40, 0, 0, 0, 0, 0, 0x0e, 16).offset, 16);
}

TEST(the_cfa_may_have_a_factored_offset) {
    UnwindRule rule = RULE(0, 0x12, 6, 0x7c); /* def_cfa_sf: rbp, -4 * -8 */

    CHECK_EQ(rule.base, BP);
    CHECK_EQ(rule.offset, 32);
    CHECK_EQ(RULE(0, 0x13, 0x7d).offset, 24);
    CHECK_EQ(RULE(0, 0x0c, 17, 8).kind, UNWIND_NONE); /* a register that perf does not record */
}

TEST(registers_are_found_wherever_they_are_saved) {
    CHECK_EQ(RULE(0, 0x83, 3).saved[IN_BX], unwind_saved_at_cfa(-24));
    CHECK_EQ(RULE(0, 0x05, 12, 4).saved[IN_R12], unwind_saved_at_cfa(-32));
    CHECK_EQ(RULE(0, 0x11, 12, 5).saved[IN_R12], unwind_saved_at_cfa(-40));
    CHECK_EQ(RULE(0, 0x2f, 12, 2).saved[IN_R12], unwind_saved_at_cfa(16));
    CHECK_EQ(RULE(0, 0x09, 3, 8).saved[IN_BX], unwind_saved_in_register(R8));
    CHECK_EQ(RULE(0, 0x83, 3, 0x08, 3).saved[IN_BX], UNWIND_SAME);
    CHECK_EQ(RULE(0, 0x83, 3, 0xc3).saved[IN_BX], UNWIND_SAME);
    CHECK_EQ(RULE(0, 0x83, 3, 0x06, 3).saved[IN_BX], UNWIND_SAME);
    CHECK_EQ(RULE(0, 0x07, 3).saved[IN_BX], UNWIND_UNKNOWN);
    CHECK_EQ(RULE(0, 0x14, 3, 2).saved[IN_BX], UNWIND_UNKNOWN);
    CHECK_EQ(RULE(0, 0x15, 3, 2).saved[IN_BX], UNWIND_UNKNOWN);
    CHECK_EQ(RULE(0, 0x16, 3, 2, 0x73, 0).saved[IN_BX], UNWIND_UNKNOWN);
    /* What lies further away than a rule can say. */
    CHECK_EQ(RULE(0, 0x83, 0xff, 0xff, 0x03).saved[IN_BX], UNWIND_UNKNOWN);
    /* Registers that no rule restores change nothing. */
    CHECK_EQ(RULE(0, 0x80, 3).kind, UNWIND_OFFSET);
}

TEST(an_undefined_return_address_ends_the_chain) {
    CHECK_EQ(RULE(0, 0x07, 16).kind, UNWIND_END);
    CHECK_EQ(RULE(0, 0x07, 16, 0xd0).kind, UNWIND_OFFSET);
    CHECK_EQ(RULE(0, 0x09, 16, 1).kind, UNWIND_NONE);
}

TEST(a_remembered_state_is_restored) {
#define EPILOGUE 0x41, 0x0e, 16, 0x0a, 0x41, 0x0e, 8, 0x41, 0x0b, 0x41, 0x2e, 16
    CHECK_EQ(RULE(1, EPILOGUE).offset, 16);
    CHECK_EQ(RULE(2, EPILOGUE).offset, 8);
    CHECK_EQ(RULE(3, EPILOGUE).offset, 16);
    CHECK_EQ(RULE(0xff, EPILOGUE).offset, 16);
}

TEST(after_a_malformed_instruction_there_is_no_rule) {
    CHECK_EQ(RULE(0, 0x41, 0x3f).offset, 8);
    CHECK_EQ(RULE(1, 0x41, 0x3f).kind, UNWIND_NONE);
    CHECK_EQ(RULE(1, 0x41, 0x0b).kind, UNWIND_NONE);       /* nothing was remembered */
    CHECK_EQ(RULE(1, 0x41, 0x0f, 0x7f).kind, UNWIND_NONE); /* longer than the FDE */
    CHECK_EQ(RULE(8, 0x48, 0x01, 0, 0, 0, 0, 0, 0, 0, 0).kind, UNWIND_NONE); /* backwards */
}

/* A CFA by an expression of n bytes. */
#define CFA_BY(n, ...) RULE(0, 0x0f, (n), __VA_ARGS__)

TEST(known_expressions_become_rules) {
    UnwindRule rule = CFA_BY(3, 0x76, 0x78, 0x06); /* *(rbp - 8) */

    CHECK_EQ(rule.kind, UNWIND_DEREF);
    CHECK_EQ(rule.base, BP);
    CHECK_EQ(rule.offset, -8);
    CHECK_EQ(rule.second, 0);
    rule = CFA_BY(6, 0x77, 0x98, 0x01, 0x06, 0x23, 8); /* *(rsp + 152) + 8 */
    CHECK_EQ(rule.kind, UNWIND_DEREF);
    CHECK_EQ(rule.base, SP);
    CHECK_EQ(rule.offset, 152);
    CHECK_EQ(rule.second, 8);
    CHECK_EQ(CFA_BY(5, 0x77, 0, 0x06, 0x38, 0x22).second, 8); /* lit8, plus */
    rule = CFA_BY(2, 0x7a, 0x10);                             /* r10 + 16 */
    CHECK_EQ(rule.kind, UNWIND_OFFSET);
    CHECK_EQ(rule.base, R8 + 2);
    CHECK_EQ(rule.offset, 16);
    rule = CFA_BY(11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    CHECK_EQ(rule.kind, UNWIND_PLT);
    CHECK_EQ(rule.base, SP);
    CHECK_EQ(rule.offset, 8);
    CHECK_EQ(rule.second, 11);
}

TEST(other_expressions_leave_no_rule) {
    CHECK_EQ(CFA_BY(1, 0x06).kind, UNWIND_NONE);
    CHECK_EQ(CFA_BY(4, 0x77, 0, 0x06, 0x06).kind, UNWIND_NONE);
    CHECK_EQ(CFA_BY(4, 0x77, 0, 0x06, 0x23).kind, UNWIND_NONE);
    CHECK_EQ(CFA_BY(5, 0x77, 0, 0x06, 0x38, 0x1c).kind, UNWIND_NONE);
    CHECK_EQ(CFA_BY(2, 0x80, 0).kind, UNWIND_OFFSET); /* rip is a register as others are */
    CHECK_EQ(RULE(0, 0x0f, 0).kind, UNWIND_NONE);
    CHECK_EQ(CFA_BY(9, 0x77, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x06).kind, UNWIND_NONE);
}

TEST(registers_of_a_realigned_stack_are_saved_beside_its_frame_pointer) {
    CHECK_EQ(RULE(0, 0x10, 6, 2, 0x76, 0).saved[IN_BP], unwind_saved_at_pointer(0));
    CHECK_EQ(RULE(0, 0x10, 12, 2, 0x76, 0x70).saved[IN_R12], unwind_saved_at_pointer(-16));
    CHECK_EQ(RULE(0, 0x10, 12, 2, 0x77, 0x70).saved[IN_R12], UNWIND_UNKNOWN);
    CHECK_EQ(RULE(0, 0x10, 12, 3, 0x76, 0x70, 0x06).saved[IN_R12], UNWIND_UNKNOWN);
}

TEST(each_place_of_a_saved_register_has_its_own_number) {
    CHECK_EQ(unwind_saved_distance(unwind_saved_at_cfa(-131064)), -131064);
    CHECK_EQ(unwind_saved_at_cfa(-131072), UNWIND_UNKNOWN);
    CHECK_EQ(unwind_saved_at_cfa(131064), 32766);
    CHECK_EQ(unwind_saved_at_cfa(131072), UNWIND_UNKNOWN);
    CHECK_EQ(unwind_saved_at_cfa(12), UNWIND_UNKNOWN);
    CHECK_EQ(unwind_saved_distance(unwind_saved_at_pointer(-65528)), -65528);
    CHECK_EQ(unwind_saved_distance(unwind_saved_at_pointer(65528)), 65528);
    CHECK_EQ(unwind_saved_at_pointer(65536), UNWIND_UNKNOWN);
    CHECK(!unwind_saved_is_at_cfa(unwind_saved_at_pointer(0)));
    for (uint8_t reg = 0; reg < UNWIND_REGISTERS; reg++)
        CHECK_EQ(unwind_saved_register(unwind_saved_in_register(reg)), reg);
    CHECK_EQ(unwind_saved_register(unwind_saved_at_pointer(65528)), UNWIND_NO_REGISTER);
}

TEST_MAIN()
