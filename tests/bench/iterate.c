/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "perfdata/order/order.h"
#include "util/log.h"
#include "util/macro.h"

/*
 * Reads a recording in order of time and does nothing else, for the bench: the cost of sorting in
 * every command that needs it.
 *
 * Usage: iterate FILE
 */

static int iterate(PdReader *reader, uint64_t *ret_records) {
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    uint64_t records = 0, last_ns = 0;
    PdRecord record;
    PdStamp stamp;
    int r = pd_order_new(reader, NULL, &order);

    if (r < 0)
        return r;
    while ((r = pd_order_next(order, &record, &stamp)) > 0) {
        records++;
        if (!stamp.has_time || stamp.time == 0)
            continue;
        if (stamp.time < last_ns)
            return -EBADMSG;
        last_ns = stamp.time;
    }
    *ret_records = records;
    return r;
}

int main(int argc, char **argv) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    uint64_t records = 0;
    PdDamage why;
    int r;

    if (argc != 2) {
        fprintf(stderr, "Usage: iterate FILE\n");
        return 2;
    }
    r = pd_reader_open(argv[1], NULL, &reader, &why);
    if (r == 0)
        r = iterate(reader, &records);
    if (r < 0) {
        log_error(r, "Failed to go through '%s': %m", argv[1]);
        return 1;
    }
    printf("%" PRIu64 " records\n", records);
    return 0;
}
