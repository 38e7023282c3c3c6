/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/pointer-chain.h"

#include "test.h"
#include "util/macro.h"

/* Where the chain of a walk goes on in the chain that the kernel found by frame pointers. */

typedef struct Chains {
    uint64_t kernel[16];
    size_t n;
    UnwindChain ours;
} Chains;

static uint64_t rest_of(const Chains *chains) {
    PdCallchain kernel = {.data = (const uint8_t *)chains->kernel, .n = chains->n};

    return pointer_chain_rest(&kernel, &chains->ours);
}

TEST(the_chain_goes_on_behind_the_frames_that_both_have) {
    Chains c = {.kernel = {PD_CONTEXT_KERNEL, 0xfff1, PD_CONTEXT_USER, 0x10, 0x20, 0x30, 0x40},
                .n = 7,
                .ours = {.n = 3, .addresses = {0x10, 0x20, 0x30}}};

    CHECK_EQ(rest_of(&c), 6);
    c.ours.n = 1;
    CHECK_EQ(rest_of(&c), 4);
}

/* A leaf of a library has no frame pointer, and the kernel misses its caller. */
TEST(the_kernel_may_miss_inner_frames) {
    Chains c = {.kernel = {PD_CONTEXT_USER, 0x10, 0x30, 0x40, 0x50},
                .n = 5,
                .ours = {.n = 4, .addresses = {0x10, 0x20, 0x30, 0x40}}};

    CHECK_EQ(rest_of(&c), 4);
}

TEST(a_single_equal_address_is_no_meeting) {
    Chains c = {.kernel = {PD_CONTEXT_USER, 0x10, 0x30, 0x40},
                .n = 4,
                .ours = {.n = 3, .addresses = {0x10, 0x20, 0x30}}};

    CHECK_EQ(rest_of(&c), 4);
}

TEST(frames_of_a_recursion_are_not_repeated) {
    Chains c = {.kernel = {PD_CONTEXT_USER, 0x10, 0x20, 0x20, 0x20, 0x20, 0x30},
                .n = 7,
                .ours = {.n = 4, .addresses = {0x10, 0x20, 0x20, 0x20}}};

    CHECK_EQ(rest_of(&c), 5);
}

TEST(chains_without_user_frames_have_no_rest) {
    Chains c = {.kernel = {PD_CONTEXT_KERNEL, 0xfff1, PD_CONTEXT_USER},
                .n = 2,
                .ours = {.n = 1, .addresses = {0xfff1}}};

    CHECK_EQ(rest_of(&c), 2);
    c.n = 3;
    CHECK_EQ(rest_of(&c), 3);
    c.n = 0;
    CHECK_EQ(rest_of(&c), 0);
    c.n = 3;
    c.ours.n = 0;
    CHECK_EQ(rest_of(&c), 3);
}

TEST_MAIN()
