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
 * Every sample of a recording with its comm and dso, in order of time, for a test that holds them
 * against what perf script prints.
 *
 * Usage: resolve FILE
 */

static int print(ProcessTable *table, const PdRecord *record, const PdStamp *stamp, Buffer *out) {
    unsigned cpumode = record->misc & PD_MISC_CPUMODE_MASK;
    PdSample sample;
    int r;

    if (!stamp->event)
        return 0;
    r = pd_sample_parse(record, stamp->event, &sample);
    if (r < 0)
        return r;
    text_printf(out, "%" PRIi32 "\t%" PRIu64 "\t%" PRIx64 "\t", (int32_t)sample.tid, sample.time,
                sample.ip);
    text_puts(out, (const char *)process_table_comm(table, sample.pid, sample.tid).name->text);
    text_putc(out, '\t');
    text_puts(out, (const char *)process_table_dso(table, sample.pid, sample.tid, cpumode,
                                                   sample.ip, NULL)
                       .name->text);
    text_putc(out, '\n');
    (void)fwrite(out->data, 1, out->size, stdout);
    buffer_clear(out);
    return 0;
}

static int resolve(const char *path) {
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
        q = record.type == PD_RECORD_SAMPLE ? print(table, &record, &stamp, &out)
                                            : process_table_feed(table, &record, stamp.event);
        if (q < 0)
            return q;
    }
    return r;
}

int main(int argc, char **argv) {
    int r = argc == 2 ? resolve(argv[1]) : -EINVAL;

    if (r < 0)
        fprintf(stderr, "resolve: %s\n", strerror(-r));
    return r < 0;
}
