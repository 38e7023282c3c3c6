/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/order/order.h"
#include "process/table/table.h"
#include "util/buffer.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * Where the call chain of each sample ends: the outermost function of user space says whether a
 * stack was unwound to its end. For benches and tests, which
 * compare the place with the ELF file by other tools than ours.
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

static int print_sample(ProcessTable *table, const PdRecord *record, const PdStamp *stamp,
                        Buffer *out) {
    const ProcessMapping *mapping = NULL;
    uint64_t address = 0, n;
    ProcessAnswer file;
    PdSample sample;
    int r;

    if (!stamp->event)
        return 0;
    r = pd_sample_parse(record, stamp->event, &sample);
    if (r < 0)
        return r;
    n = count_user_frames(&sample.callchain, &address);
    /* A return address may lie behind the last instruction of the function that called. */
    address -= n > 1;
    file = process_table_dso(table, sample.pid, sample.tid, PD_MISC_USER, address, &mapping);
    text_printf(out,
                "%" PRIu64 "\t%" PRIi32 "\t%" PRIi32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIx64 "\t",
                sample.time, (int32_t)sample.pid, (int32_t)sample.tid, sample.cpu, n,
                mapping ? address - mapping->start + mapping->pgoff : address);
    text_puts(out, mapping ? (const char *)file.name->text : "-");
    text_putc(out, '\t');
    text_puts(out, (const char *)process_table_comm(table, sample.pid, sample.tid).name->text);
    text_putc(out, '\n');
    (void)fwrite(out->data, 1, out->size, stdout);
    buffer_clear(out);
    return 0;
}

static int print_samples(const char *path) {
    _cleanup_(process_table_freep) ProcessTable *table = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    PdRecord record;
    PdStamp stamp;
    int r, q;

    r = pd_reader_open(path, NULL, &reader, NULL);
    if (r >= 0)
        r = pd_order_new(reader, NULL, &order);
    if (r >= 0)
        r = process_table_new(NULL, &table);
    if (r < 0)
        return r;
    while ((r = pd_order_next(order, &record, &stamp)) > 0) {
        q = record.type == PD_RECORD_SAMPLE ? print_sample(table, &record, &stamp, &out)
                                            : process_table_feed(table, &record, stamp.event);
        if (q < 0)
            return q;
    }
    return r;
}

int main(int argc, char **argv) {
    int r = argc == 2 ? print_samples(argv[1]) : -EINVAL;

    if (r < 0)
        fprintf(stderr, "chain-end: %s\n", strerror(-r));
    return r < 0;
}
