/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind.h"

#include "make-walk.h"
#include "test.h"

/* Walks over stacks of aarch64. */

enum {
    FP_ARM = 29,
    LR_ARM = 30,
    SP_ARM = 31,
    PC_ARM = 32,
};

enum { ARM_LEAF, ARM_FRAME, ARM_END, ARM_SIGNAL, ARM_UNSAVED };

static void init_arm(MadeWalk *walk) {
    const UnwindRule rules[] = {
        [ARM_LEAF] = {.kind = UNWIND_OFFSET, .base = SP_ARM},
        [ARM_FRAME] = {.kind = UNWIND_OFFSET,
                       .base = FP_ARM,
                       .offset = 32,
                       .saved = {unwind_saved_at_cfa(-24), unwind_saved_at_cfa(-32)}},
        [ARM_END] = {.kind = UNWIND_END},
        [ARM_SIGNAL] = {.kind = UNWIND_SIGNAL},
        [ARM_UNSAVED] = {.kind = UNWIND_OFFSET, .base = SP_ARM, .offset = 16},
    };

    made_walk_init(walk, EM_AARCH64, rules, ARRAY_SIZE(rules));
}

TEST(the_caller_of_an_aarch64_leaf_is_in_the_link_register) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_arm(&w);
    w.registers[PC_ARM] = code_of(ARM_LEAF);
    /* A return address may be signed in its upper bits. */
    w.registers[LR_ARM] = code_of(ARM_FRAME) | 0x2aULL << 48;
    w.registers[FP_ARM] = stack_at(2);
    WORDS(&w, 0, 0, 0, code_of(ARM_END) | 0x55ULL << 55);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(ARM_LEAF), code_of(ARM_FRAME), code_of(ARM_END)));
}

TEST(link_register_is_not_used_twice) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_arm(&w);
    w.registers[PC_ARM] = code_of(ARM_LEAF);
    w.registers[LR_ARM] = code_of(ARM_UNSAVED);
    w.registers[FP_ARM] = 0x77;
    WORDS(&w, 0, 0, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_RULE);
    CHECK(CHAIN(&w, code_of(ARM_LEAF), code_of(ARM_UNSAVED)));
}

TEST(a_signal_frame_of_aarch64_restores_all_registers) {
    const UnwindMachine *arm = unwind_machine(EM_AARCH64);
    _cleanup_(made_walk_done) MadeWalk w;

    init_arm(&w);
    w.registers[PC_ARM] = code_of(ARM_LEAF);
    w.registers[LR_ARM] = code_of(ARM_SIGNAL);
    w.words[arm->in_signal[PC_ARM] / 8] = WALK_FILE + ARM_LEAF * WALK_RULE_SIZE;
    w.words[arm->in_signal[SP_ARM] / 8] = stack_at(100);
    w.words[arm->in_signal[LR_ARM] / 8] = code_of(ARM_FRAME);
    w.words[arm->in_signal[FP_ARM] / 8] = stack_at(100);
    w.words[101] = code_of(ARM_END);
    w.n_words = 110;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(ARM_LEAF), code_of(ARM_SIGNAL), WALK_FILE + ARM_LEAF * WALK_RULE_SIZE,
                code_of(ARM_FRAME), code_of(ARM_END)));
}

TEST(a_signal_frame_of_aarch64_is_recognised_without_a_rule) {
    const UnwindMachine *arm = unwind_machine(EM_AARCH64);
    uint64_t restorer = WALK_FILE + 0x8000, interrupted = WALK_FILE + ARM_LEAF * WALK_RULE_SIZE;
    _cleanup_(made_walk_done) MadeWalk w;

    init_arm(&w);
    w.registers[PC_ARM] = code_of(ARM_LEAF);
    w.registers[LR_ARM] = restorer;
    w.registers[FP_ARM] = stack_at(90);
    w.words[90] = w.words[arm->in_signal[FP_ARM] / 8] = stack_at(100);
    w.words[91] = w.words[arm->in_signal[LR_ARM] / 8] = code_of(ARM_FRAME);
    w.words[arm->in_signal[PC_ARM] / 8] = interrupted;
    w.words[arm->in_signal[SP_ARM] / 8] = stack_at(100);
    w.words[101] = code_of(ARM_END);
    w.n_words = 110;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(
        CHAIN(&w, code_of(ARM_LEAF), restorer, interrupted, code_of(ARM_FRAME), code_of(ARM_END)));
    /* Another record of a frame is one of an ordinary function. */
    w.words[91] = code_of(ARM_END);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(ARM_LEAF), restorer, code_of(ARM_END)));
}

TEST(frame_pointers_of_aarch64_do_not_restore_the_sp) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_arm(&w);
    w.registers[PC_ARM] = WALK_ANONYMOUS;
    w.registers[FP_ARM] = stack_at(1);
    /* Behind it a rule by the frame pointer holds, one by the sp does not. */
    WORDS(&w, 0, stack_at(4), code_of(ARM_FRAME), 0, 0, code_of(ARM_END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, WALK_ANONYMOUS, code_of(ARM_FRAME), code_of(ARM_END)));
    WORDS(&w, 0, 0x77, code_of(ARM_UNSAVED), 0, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_RULE);
}

TEST_MAIN()
