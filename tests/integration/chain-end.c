/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "each-sample.h"
#include "util/text.h"

/*
 * Where the call chain of each sample ends: the outermost function of user space says whether a
 * stack was unwound to its end. Benches and tests compare the place with the ELF file by other
 * tools than ours.
 *
 * Usage: chain-end FILE
 * Prints a line for each sample, with tabs: time, pid, tid, CPU, frames of user space, the offset
 * in the file (hexadecimal), the file, and the comm. Where the outermost address is in no mapping,
 * the offset is the address itself and the file is "-". Without a frame both are 0 and "-".
 */

/* The frames of user space, and the address of the outermost one. */
static uint64_t count_user_frames(const PdCallchain *chain, uint64_t *ret_outermost) {
    uint64_t n = 0;
    bool is_user = false;

    for (uint64_t i = 0; i < chain->n; i++) {
        uint64_t value = pd_u64_at(chain, i);

        if (value >= (uint64_t)-4095) {
            is_user = value == PD_CONTEXT_USER;
        } else if (is_user) {
            n++;
            *ret_outermost = value;
        }
    }
    return n;
}

static int print(ProcessTable *table, const PdRecord *record _unused_, const PdSample *sample,
                 Buffer *out) {
    const ProcessMapping *mapping = NULL;
    uint64_t address = 0, n = count_user_frames(&sample->callchain, &address);
    ProcessAnswer file;

    /* A return address may lie behind the last instruction of the function that called. */
    address -= n > 1;
    file = process_table_dso(table, sample->pid, sample->tid, PD_MISC_USER, address, &mapping);
    text_printf(out,
                "%" PRIu64 "\t%" PRIi32 "\t%" PRIi32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIx64 "\t",
                sample->time, (int32_t)sample->pid, (int32_t)sample->tid, sample->cpu, n,
                mapping ? address - mapping->start + mapping->pgoff : address);
    text_puts(out, mapping ? (const char *)file.name->text : "-");
    text_putc(out, '\t');
    text_puts(out, (const char *)process_table_comm(table, sample->pid, sample->tid).name->text);
    text_putc(out, '\n');
    return 0;
}

int main(int argc, char **argv) {
    return each_sample_main(argc, argv, print);
}
