/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind.h"

#include <linux/perf_event.h>
#include <ucontext.h>

#include "make-unwind.h"
#include "make-walk.h"
#include "test.h"

enum {
    BX = 1,
    BP = 6,
    SP = 7,
    IP = 8,
    R10 = 18,
};

/* Rules of x86-64, in the order in which they lie in the file. */
enum {
    LEAF,     /* CFA = sp + 8 */
    FRAME_32, /* CFA = sp + 32 */
    POINTER,  /* CFA = rbp + 16, rbp saved */
    END,
    SIGNAL,
    PLT,
    REALIGNED, /* CFA = *(rbp - 8), rbp saved beside itself */
    BY_R10,
    BACKWARDS, /* CFA = sp - 64 */
    BY_BX,
    IN_R10, /* rbx lies in r10 */
};

#define RA_BELOW(cfa) .saved = {unwind_saved_at_cfa(-8), (cfa)}

static void init_x86(MadeWalk *walk) {
    const UnwindRule rules[] = {
        [LEAF] = {.kind = UNWIND_OFFSET, .base = SP, .offset = 8, RA_BELOW(UNWIND_SAME)},
        [FRAME_32] = {.kind = UNWIND_OFFSET, .base = SP, .offset = 32, RA_BELOW(UNWIND_SAME)},
        [POINTER] = {.kind = UNWIND_OFFSET,
                     .base = BP,
                     .offset = 16,
                     RA_BELOW(unwind_saved_at_cfa(-16))},
        [END] = {.kind = UNWIND_END},
        [SIGNAL] = {.kind = UNWIND_SIGNAL},
        [PLT] = {.kind = UNWIND_PLT, .base = SP, .offset = 8, .second = 11, RA_BELOW(UNWIND_SAME)},
        [REALIGNED] = {.kind = UNWIND_DEREF,
                       .base = BP,
                       .offset = -8,
                       RA_BELOW(unwind_saved_at_pointer(0))},
        [BY_R10] = {.kind = UNWIND_OFFSET, .base = R10, RA_BELOW(UNWIND_SAME)},
        [BACKWARDS] = {.kind = UNWIND_OFFSET, .base = SP, .offset = -64, RA_BELOW(UNWIND_SAME)},
        [BY_BX] = {.kind = UNWIND_OFFSET, .base = BX, .offset = 16, RA_BELOW(UNWIND_SAME)},
        [IN_R10] = {.kind = UNWIND_OFFSET,
                    .base = SP,
                    .offset = 8,
                    .saved = {unwind_saved_at_cfa(-8), 0, unwind_saved_in_register(R10)}},
    };

    made_walk_init(walk, EM_X86_64, rules, ARRAY_SIZE(rules));
    walk->version = 1;
}

/* -- by rules --------------------------------------------------------------------------------- */

TEST(a_leaf_and_its_callers_lead_to_the_start) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(FRAME_32), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(LEAF), code_of(FRAME_32), code_of(END)));
}

TEST(call_at_the_end_of_a_function_is_looked_up_before_its_return) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = WALK_FILE; /* exact: the first byte of the leaf */
    /* The return address is the first byte of FRAME_32, the call the last of LEAF. */
    WORDS(&w, WALK_FILE + FRAME_32 * WALK_RULE_SIZE, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK_EQ(w.chain.n, 3);
}

TEST(stack_that_ends_too_soon_is_truncated) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(FRAME_32), 0, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
    CHECK(CHAIN(&w, code_of(LEAF), code_of(FRAME_32)));
    w.n_words = 0;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
    CHECK(CHAIN(&w, code_of(LEAF)));
}

TEST(saved_frame_pointer_is_restored_across_frames) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(POINTER);
    w.registers[BP] = stack_at(1);
    WORDS(&w, 0, stack_at(5), code_of(FRAME_32), 0, 0, 0, code_of(POINTER));
    /* FRAME_32 ends at word 7, and leaves rbp at word 5: its saved rbp is there. */
    w.words[5] = 0;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_STUCK);
    CHECK(CHAIN(&w, code_of(POINTER), code_of(FRAME_32), code_of(POINTER)));
    WORDS(&w, 0, stack_at(7), code_of(FRAME_32), 0, 0, 0, code_of(POINTER), 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK_EQ(w.chain.n, 4);
}

TEST(realigned_stack_is_left_by_its_frame_pointer) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(REALIGNED);
    w.registers[BP] = stack_at(3);
    /* CFA at word 6; rbp saved at word 3: it leads the caller to word 9. */
    WORDS(&w, 0, 0, stack_at(6), stack_at(8), 0, code_of(POINTER), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(REALIGNED), code_of(POINTER), code_of(END)));
}

TEST(the_procedure_linkage_table_is_unwound_by_the_low_bits_of_the_address) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    WORDS(&w, code_of(END), code_of(FRAME_32), 0, 0);
    w.registers[IP] = code_of(PLT) / 16 * 16 + 10;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK_EQ(w.chain.addresses[1], code_of(END));
    w.registers[IP] = code_of(PLT) / 16 * 16 + 11;
    (void)made_walk_run(&w, NULL);
    CHECK_EQ(w.chain.addresses[1], code_of(FRAME_32));
}

TEST(registers_of_the_caller_may_be_in_other_registers_of_the_innermost_frame) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(IN_R10);
    w.registers[R10] = stack_at(2);
    WORDS(&w, code_of(BY_BX), 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(IN_R10), code_of(BY_BX), code_of(END)));
    /* r10 of an outer frame is not known. */
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(BY_R10), 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_RULE);
    CHECK(CHAIN(&w, code_of(LEAF), code_of(BY_R10)));
}

TEST(each_frame_is_above_the_previous_one) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(BACKWARDS), 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_STUCK);
    w.registers[IP] = code_of(BACKWARDS);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_STUCK);
    CHECK_EQ(w.chain.n, 1);
}

TEST(the_length_of_a_chain_is_limited) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    for (unsigned i = 0; i < WALK_WORDS_MAX; i++)
        w.words[i] = code_of(LEAF);
    w.n_words = WALK_WORDS_MAX;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
    CHECK_EQ(w.chain.n, UNWIND_FRAMES_MAX);
}

TEST(an_address_outside_of_code_is_not_in_the_chain) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, 0x1234, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_CODE);
    CHECK(CHAIN(&w, code_of(LEAF)));
    w.words[0] = 0;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    w.registers[IP] = 0x1234;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_CODE);
    CHECK(CHAIN(&w, 0x1234));
}

TEST(a_signal_frame_restores_all_registers) {
    const UnwindMachine *x86 = unwind_machine(EM_X86_64);
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    /* A handler, its return into the restorer, the ucontext, the interrupted frame. */
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(SIGNAL));
    w.words[1 + x86->in_signal[IP] / 8] = WALK_FILE + BY_R10 * WALK_RULE_SIZE;
    w.words[1 + x86->in_signal[SP] / 8] = stack_at(40);
    w.words[1 + x86->in_signal[R10] / 8] = stack_at(50);
    w.words[49] = code_of(END);
    w.n_words = 60;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(LEAF), code_of(SIGNAL), WALK_FILE + BY_R10 * WALK_RULE_SIZE,
                code_of(END)));
    w.n_words = 15;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
}

/* -- by frame pointers ------------------------------------------------------------------------ */

TEST(code_without_a_table_is_unwound_by_frame_pointers) {
    static const struct {
        uint64_t code;
        UnwindVerdict lost; /* where frame pointers lead no further */
        UnwindVerdict whole;
    } codes[] = {
        {WALK_ANONYMOUS, UNWIND_ANONYMOUS, UNWIND_WHOLE},
        {WALK_REFUSED, UNWIND_REFUSED, UNWIND_WHOLE},
        {WALK_FILE + 0x8000, UNWIND_NO_RULE, UNWIND_WHOLE},
        {WALK_PENDING, UNWIND_PENDING, UNWIND_PENDING},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        _cleanup_(made_walk_done) MadeWalk w;
        uint64_t ip = codes[i].code + 0x10;

        init_x86(&w);
        w.registers[IP] = ip;
        w.registers[BP] = stack_at(1);
        WORDS(&w, 0, stack_at(4), ip, 0, 0, ip);
        CHECK_EQ(made_walk_run(&w, NULL), codes[i].whole); /* the last rbp is 0 */
        CHECK(CHAIN(&w, ip, ip, ip));
        w.words[4] = 12345;
        CHECK_EQ(made_walk_run(&w, NULL), codes[i].lost);
        CHECK_EQ(w.chain.n, 3);
        /* A table behind it is used again: the sp is known. */
        WORDS(&w, 0, 0, code_of(FRAME_32), 0, 0, 0, code_of(END));
        CHECK_EQ(made_walk_run(&w, NULL), codes[i].whole);
        CHECK(CHAIN(&w, ip, code_of(FRAME_32), code_of(END)));
    }
}

TEST(frame_pointer_is_checked) {
    static const uint64_t odd[] = {WALK_STACK - 8, WALK_STACK + 9, UINT64_MAX, 1};
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = WALK_ANONYMOUS;
    WORDS(&w, 0, 0, code_of(END), 0, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(odd); i++) {
        w.registers[BP] = odd[i];
        CHECK_EQ(made_walk_run(&w, NULL), UNWIND_ANONYMOUS);
        CHECK_EQ(w.chain.n, 1);
    }
    w.registers[BP] = stack_at(0x1000);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
    w.registers[BP] = stack_at(1);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    w.words[2] = 0x1234; /* no code */
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_ANONYMOUS);
}

/* Such code may use the frame pointer for anything: assembly that was written by hand, and code
 * that was made at run time. */
TEST(innermost_frame_of_code_without_a_rule_does_not_end_a_stack) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = WALK_ANONYMOUS;
    w.registers[BP] = 0;
    WORDS(&w, 0, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_ANONYMOUS);
    CHECK_EQ(w.chain.n, 1);
    w.registers[IP] = WALK_REFUSED;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_REFUSED);
    CHECK_EQ(w.chain.n, 1);
}

TEST(a_frame_pointer_that_leads_out_of_the_copy_is_reported) {
    static const uint64_t outside[] = {WALK_STACK - 0x100000, WALK_STACK + 0x1000, 0xc000001000};
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = WALK_REFUSED;
    w.registers[BP] = stack_at(1);
    for (unsigned i = 0; i < ARRAY_SIZE(outside); i++) {
        WORDS(&w, 0, outside[i], WALK_REFUSED + 0x10, 0, 0);
        CHECK(made_walk_run(&w, NULL) != UNWIND_WHOLE);
        CHECK_EQ(w.chain.n, 2);
        CHECK(w.chain.leaves_copy);
    }
    WORDS(&w, 0, outside[0] + 1, WALK_REFUSED + 0x10, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_REFUSED);
    CHECK(!w.chain.leaves_copy);
    WORDS(&w, 0, 0, code_of(END), 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(!w.chain.leaves_copy);
    /* By its rule, not by a frame pointer. */
    w.registers[IP] = code_of(FRAME_32);
    w.n_words = 2;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_TRUNCATED);
    CHECK(!w.chain.leaves_copy);
}

TEST(trampolines_of_python_are_unwound) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    w.registers[BP] = 0x77;
    WORDS(&w, WALK_ANONYMOUS + 9, 0, code_of(FRAME_32), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, code_of(LEAF), WALK_ANONYMOUS + 9, code_of(FRAME_32), code_of(END)));
    /* Only into a file with a table. */
    w.words[2] = WALK_REFUSED + 1;
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_ANONYMOUS);
}

TEST(a_sample_within_a_trampoline_of_python_is_unwound) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[BP] = 0x77;
    w.registers[IP] = WALK_ANONYMOUS + 9;
    WORDS(&w, code_of(FRAME_32), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, WALK_ANONYMOUS + 9, code_of(FRAME_32), code_of(END)));
    WORDS(&w, 0, code_of(FRAME_32), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_WHOLE);
    CHECK(CHAIN(&w, WALK_ANONYMOUS + 9, code_of(FRAME_32), code_of(END)));
    /* Where both words may be it, neither is. */
    WORDS(&w, code_of(FRAME_32), code_of(FRAME_32), 0, 0, 0, code_of(END));
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_ANONYMOUS);
    CHECK_EQ(w.chain.n, 1);
}

TEST(a_register_of_all_ones_is_unknown) {
    _cleanup_(made_walk_done) MadeWalk w;

    init_x86(&w);
    w.registers[IP] = code_of(BY_BX);
    w.registers[BX] = UINT64_MAX;
    w.registers[BP] = 0x77;
    WORDS(&w, 0, 0, 0);
    CHECK_EQ(made_walk_run(&w, NULL), UNWIND_NO_RULE);
    CHECK_EQ(w.chain.n, 1);
}

TEST(a_stack_at_the_end_of_the_address_space_is_unwound) {
    static const uint64_t codes[] = {WALK_FILE, WALK_ANONYMOUS, WALK_PENDING, WALK_REFUSED};

    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        for (uint64_t sp = UINT64_MAX - 1; sp > UINT64_MAX - 300; sp -= 1) {
            _cleanup_(made_walk_done) MadeWalk w;

            init_x86(&w);
            w.registers[IP] = codes[i];
            w.registers[SP] = sp;
            w.registers[BP] = sp;
            w.n_words = WALK_WORDS_MAX;
            CHECK(made_walk_run(&w, NULL) != UNWIND_NO_USER);
        }
    }
}

/* -- what is not walked ----------------------------------------------------------------------- */

TEST(a_sample_of_another_abi_has_only_its_ip) {
    uint64_t registers[] = {1, 2, WALK_STACK, code_of(LEAF)};
    UnwindSample sample = {.machine = EM_X86_64,
                           .abi = PERF_SAMPLE_REGS_ABI_32,
                           .mask = 1ULL << 1 | 1ULL << 2 | 1ULL << SP | 1ULL << IP,
                           .registers = {.data = (const void *)registers, .size = 32}};
    _cleanup_(made_walk_done) MadeWalk w;
    UnwindSpace space = {.find = made_walk_find, .userdata = &w};

    init_x86(&w);
    CHECK_EQ(unwind_walk(&sample, &space, NULL, &w.chain), UNWIND_32_BIT);
    CHECK(CHAIN(&w, code_of(LEAF)));
    sample.abi = PERF_SAMPLE_REGS_ABI_NONE;
    CHECK_EQ(unwind_walk(&sample, &space, NULL, &w.chain), UNWIND_NO_USER);
    CHECK_EQ(w.chain.n, 0);
    sample.abi = PERF_SAMPLE_REGS_ABI_64;
    CHECK_EQ(unwind_walk(&sample, &space, NULL, &w.chain), UNWIND_TRUNCATED);
    sample.registers.size = 31;
    CHECK_EQ(unwind_walk(&sample, &space, NULL, &w.chain), UNWIND_NO_USER);
    CHECK_EQ(w.chain.n, 0);
    sample.registers.size = 32;
    sample.machine = EM_386;
    CHECK_EQ(unwind_walk(&sample, &space, NULL, &w.chain), UNWIND_NO_USER);
}

TEST(cached_rules_are_valid_until_the_version_changes) {
    static UnwindCache cache;
    _cleanup_(made_walk_done) MadeWalk w;
    unsigned first;

    init_x86(&w);
    w.registers[IP] = code_of(LEAF);
    WORDS(&w, code_of(FRAME_32), 0, 0, 0, code_of(END));
    for (w.version = 1; w.version < 4; w.version++) {
        first = w.n_finds;
        CHECK_EQ(made_walk_run(&w, &cache), UNWIND_WHOLE);
        CHECK_EQ(w.n_finds, first + 1);
        CHECK_EQ(made_walk_run(&w, &cache), UNWIND_WHOLE);
        CHECK_EQ(w.n_finds, first + 1);
        CHECK_EQ(w.chain.n, 3);
    }
    CHECK_EQ(cache.hits, 9);
    CHECK_EQ(cache.misses, 9);
}

TEST(code_without_a_table_is_cached_and_pending_code_is_not) {
    static const struct {
        uint64_t code;
        unsigned n_finds;
    } codes[] = {{WALK_ANONYMOUS, 0}, {WALK_REFUSED, 0}, {WALK_PENDING, 1}};

    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        static UnwindCache cache;
        _cleanup_(made_walk_done) MadeWalk w;
        UnwindVerdict first;
        unsigned n_finds;

        init_x86(&w);
        w.version = i + 1;
        w.registers[IP] = codes[i].code;
        w.registers[BP] = 1; /* leads nowhere */
        first = made_walk_run(&w, &cache);
        n_finds = w.n_finds;
        CHECK_EQ(made_walk_run(&w, &cache), first);
        CHECK_EQ(w.n_finds - n_finds, codes[i].n_finds);
    }
}

/* -- this very program ------------------------------------------------------------------------ */

#if defined(__x86_64__)

/* The registers of this very place and the stack above it, as perf records them. */
enum { STACK_SIZE = 64 << 10 };

static const uint8_t order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_RIP, REG_R8,  REG_R9,  REG_R10,
                                REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

typedef struct Taken {
    uint64_t registers[ARRAY_SIZE(order)];
    _Alignas(8) uint8_t stack[STACK_SIZE];
    size_t stack_size;
} Taken;

extern void *__libc_stack_end;

/* Word by word, since a sanitizer would not let memcpy() pass between frames. */
__attribute__((no_sanitize("address"))) static void copy_stack(Taken *taken, uint64_t sp,
                                                               size_t size) {
    const volatile uint64_t *from = (const volatile uint64_t *)sp;
    uint64_t *to = (uint64_t *)taken->stack;

    taken->stack_size = MIN(size, (uint64_t)__libc_stack_end - sp) / 8 * 8;
    for (size_t i = 0; i < taken->stack_size / 8; i++)
        to[i] = from[i];
}

__attribute__((noinline)) static void take(Taken *taken, size_t size) {
    ucontext_t context;

    (void)getcontext(&context);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        taken->registers[i] = (uint64_t)context.uc_mcontext.gregs[order[i]];
    copy_stack(taken, taken->registers[7], size);
}

static UnwindVerdict walk_taken(const Taken *taken, UnwindCache *cache, UnwindChain *chain) {
    static const uint64_t mask = 0x1ff | 0xffULL << 16;
    _cleanup_(scene_freep) Scene *scene = scene_new(0);
    UnwindSample sample = {
        .machine = EM_X86_64,
        .abi = PERF_SAMPLE_REGS_ABI_64,
        .mask = mask,
        .registers = {.data = (const void *)taken->registers, .size = sizeof(taken->registers)},
        .stack = {.data = taken->stack, .size = taken->stack_size}};

    return unwind_walk(&sample, &scene->space, cache, chain);
}

__attribute__((noinline)) static int deep(unsigned depth, Taken *taken, size_t size) {
    volatile int result = 0;

    if (depth > 0)
        result = deep(depth - 1, taken, size);
    else
        take(taken, size);
    return result + 1;
}

TEST(the_chain_of_this_test_reaches_its_start) {
    static Taken taken;
    UnwindChain chain;

    (void)deep(30, &taken, STACK_SIZE);
    CHECK_EQ(walk_taken(&taken, NULL, &chain), UNWIND_WHOLE);
    CHECK(chain.n >= 35);
    /* The frames of one function that calls itself have one return address. */
    for (unsigned i = 3; i < 30; i++)
        CHECK_EQ(chain.addresses[i], chain.addresses[2]);
}

#endif

TEST(each_verdict_has_a_name_of_its_own) {
    for (unsigned i = 0; i < UNWIND_VERDICTS; i++)
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(unwind_verdict_name(i), unwind_verdict_name(j)) != 0);
}

TEST_MAIN()
