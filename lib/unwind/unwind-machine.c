/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind-machine.h"

#include "util/macro.h"

/*
 * A row for each machine. perf's numbers are those of enum perf_event_x86_regs and
 * perf_event_arm_regs; signal frames are the kernel's struct rt_sigframe: on x86-64 the sp of the
 * restorer points to the ucontext, on aarch64 to the siginfo before it.
 */

enum {
    X86_AX,
    X86_BX,
    X86_CX,
    X86_DX,
    X86_SI,
    X86_DI,
    X86_BP,
    X86_SP,
    X86_IP,
    X86_R8 = 16,
    X86_R12 = 20,
    X86_R15 = 23,
    X86_REGISTERS,
    ARM_X0 = 0,
    ARM_FP = 29,
    ARM_LR,
    ARM_SP,
    ARM_PC,
    ARM_REGISTERS,
    X86_GREGS = 40,    /* in struct ucontext */
    ARM_CONTEXT = 304, /* of struct sigcontext in struct rt_sigframe; x0 follows a word */
};

#define X86_GREG(i) (X86_GREGS + 8 * (i))
#define ARM_GREG(i) (ARM_CONTEXT + 8 + 8 * (i))

/* clang-format off */
static const UnwindMachine machines[] = {
    {
        .machine = EM_X86_64, .n_registers = X86_REGISTERS,
        .ip = X86_IP, .sp = X86_SP, .fp = X86_BP, .link = UNWIND_NO_REGISTER,
        .saved = { X86_IP, X86_BP, X86_BX, X86_R12, X86_R12 + 1, X86_R12 + 2, X86_R15 },
        .in_signal = {
            [X86_R8] = X86_GREG(0), X86_GREG(1), X86_GREG(2), X86_GREG(3),
                       X86_GREG(4), X86_GREG(5), X86_GREG(6), X86_GREG(7),
            [X86_DI] = X86_GREG(8), [X86_SI] = X86_GREG(9), [X86_BP] = X86_GREG(10),
            [X86_BX] = X86_GREG(11), [X86_DX] = X86_GREG(12), [X86_AX] = X86_GREG(13),
            [X86_CX] = X86_GREG(14), [X86_SP] = X86_GREG(15), [X86_IP] = X86_GREG(16),
        },
        .frame_is_cfa = true,
        .address_mask = UINT64_MAX,
    },
    {
        .machine = EM_AARCH64, .n_registers = ARM_REGISTERS,
        .ip = ARM_PC, .sp = ARM_SP, .fp = ARM_FP, .link = ARM_LR,
        .saved = { ARM_PC, ARM_FP, UNWIND_NO_REGISTER, UNWIND_NO_REGISTER, UNWIND_NO_REGISTER,
                   UNWIND_NO_REGISTER, UNWIND_NO_REGISTER },
        .in_signal = {
            ARM_GREG(0), ARM_GREG(1), ARM_GREG(2), ARM_GREG(3), ARM_GREG(4), ARM_GREG(5),
            ARM_GREG(6), ARM_GREG(7), ARM_GREG(8), ARM_GREG(9), ARM_GREG(10), ARM_GREG(11),
            ARM_GREG(12), ARM_GREG(13), ARM_GREG(14), ARM_GREG(15), ARM_GREG(16), ARM_GREG(17),
            ARM_GREG(18), ARM_GREG(19), ARM_GREG(20), ARM_GREG(21), ARM_GREG(22), ARM_GREG(23),
            ARM_GREG(24), ARM_GREG(25), ARM_GREG(26), ARM_GREG(27), ARM_GREG(28), ARM_GREG(29),
            ARM_GREG(30), ARM_GREG(31), ARM_GREG(32),
        },
        /* 48 bits of address are what programs get unless they ask for more. */
        .address_mask = (1ULL << 48) - 1,
    },
};

/* By the number that DWARF gives a register. */
static const uint8_t x86_of_dwarf[] = {
    X86_AX, X86_DX, X86_CX, X86_BX, X86_SI, X86_DI, X86_BP, X86_SP,
    X86_R8, X86_R8 + 1, X86_R8 + 2, X86_R8 + 3, X86_R12, X86_R12 + 1, X86_R12 + 2, X86_R15,
    X86_IP,
};
/* clang-format on */

static_assert((unsigned)X86_REGISTERS <= UNWIND_REGISTERS &&
                  (unsigned)ARM_REGISTERS <= UNWIND_REGISTERS,
              "room for each machine");

const UnwindMachine *unwind_machine(uint16_t machine) {
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (machines[i].machine == machine)
            return &machines[i];
    return NULL;
}

uint8_t unwind_register_of_dwarf(uint16_t machine, uint64_t number) {
    if (machine == EM_X86_64)
        return number < ARRAY_SIZE(x86_of_dwarf) ? x86_of_dwarf[number] : UNWIND_NO_REGISTER;
    /* DWARF and perf number x0 to x30 and sp alike. */
    return number <= ARM_SP ? (uint8_t)number : UNWIND_NO_REGISTER;
}
