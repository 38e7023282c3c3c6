/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "each-sample.h"
#include "util/text.h"

/*
 * Every sample of a recording with its comm and dso, in order of time, for a test that holds them
 * against what perf script prints.
 *
 * Usage: resolve FILE
 */

static int print(ProcessTable *table, const PdRecord *record, const PdSample *sample, Buffer *out) {
    unsigned cpumode = record->misc & PD_MISC_CPUMODE_MASK;

    text_printf(out, "%" PRIi32 "\t%" PRIu64 "\t%" PRIx64 "\t", (int32_t)sample->tid, sample->time,
                sample->ip);
    text_puts(out, (const char *)process_table_comm(table, sample->pid, sample->tid).name->text);
    text_putc(out, '\t');
    text_puts(out, (const char *)process_table_dso(table, sample->pid, sample->tid, cpumode,
                                                   sample->ip, NULL)
                       .name->text);
    text_putc(out, '\n');
    return 0;
}

int main(int argc, char **argv) {
    return each_sample_main(argc, argv, print);
}
