/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/order/order.h"
#include "process/table/table.h"
#include "util/buffer.h"
#include "util/macro.h"

/* A tool that prints a line for each sample of a recording, in order of time, with what the process
 * table knows at that moment. */

typedef int (*PrintSample)(ProcessTable *table, const PdRecord *record, const PdSample *sample,
                           Buffer *out);

static int each_sample_print(PrintSample print, ProcessTable *table, const PdRecord *record,
                             const PdStamp *stamp, Buffer *out) {
    PdSample sample;
    int r;

    if (!stamp->event)
        return 0;
    r = pd_sample_parse(record, stamp->event, &sample);
    if (r >= 0)
        r = print(table, record, &sample, out);
    if (r < 0)
        return r;
    (void)fwrite(out->data, 1, out->size, stdout);
    buffer_clear(out);
    return 0;
}

static int each_sample(const char *path, PrintSample print) {
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
        q = record.type == PD_RECORD_SAMPLE ? each_sample_print(print, table, &record, &stamp, &out)
                                            : process_table_feed(table, &record, stamp.event);
        if (q < 0)
            return q;
    }
    return r;
}

/* The exit status of a tool whose only argument is the recording. */
static int each_sample_main(int argc, char **argv, PrintSample print) {
    int r = argc == 2 ? each_sample(argv[1], print) : -EINVAL;

    if (r < 0)
        fprintf(stderr, "%s: %s\n", argv[0], strerror(-r));
    return r < 0;
}
