/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What differs between the machines that can be unwound: registers by perf's numbers, which of them
 * a rule may restore, and where the kernel keeps them while a signal is handled.
 */

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UNWIND_SAVED = 7,      /* registers that a rule may restore, the return address first */
    UNWIND_REGISTERS = 33, /* the most that a machine has in perf's order */
    UNWIND_NO_REGISTER = 0xff,
};

typedef struct UnwindMachine {
    uint16_t machine; /* EM_X86_64, EM_AARCH64 */
    uint8_t n_registers;
    uint8_t ip, sp, fp;          /* perf's numbers */
    uint8_t link;                /* what holds the return address at first, or none */
    uint8_t saved[UNWIND_SAVED]; /* the registers of UnwindRule.saved, the ip first */
    uint16_t
        in_signal[UNWIND_REGISTERS]; /* where each lies above the sp of a signal frame; 0: not */
    bool frame_is_cfa;               /* a frame pointer lies right below the caller's frame */
    uint64_t address_mask;           /* of a return address, without the bits that sign it */
} UnwindMachine;

/* NULL: no such machine. */
const UnwindMachine *unwind_machine(uint16_t machine);

/* perf's number of a register that DWARF numbers, or UNWIND_NO_REGISTER. */
uint8_t unwind_register_of_dwarf(uint16_t machine, uint64_t number);
