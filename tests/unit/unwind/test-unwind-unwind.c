/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind.h"

#include <linux/perf_event.h>
#include <ucontext.h>

#include "make-unwind.h"
#include "test.h"

#if defined(__x86_64__)

/* The registers of this very place and the stack above it, as perf records them. */
enum { STACK_SIZE = 16 << 10 };

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

static UnwindVerdict walk(const Taken *taken, UnwindCache *cache, UnwindChain *chain) {
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

    (void)deep(30, &taken, 8 << 10);
    CHECK_EQ(walk(&taken, NULL, &chain), UNWIND_WHOLE);
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
