/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/order/order.h"

#include <errno.h>

#include "util/macro.h"

/*
 * A reader's records by time. At a FINISHED_ROUND everything up to the greatest time that had been
 * seen at the round before may go; the file's end lets go of the rest. A directory's rounds say
 * nothing about its other files, so there only the end counts.
 */

struct PdOrder {
    PdReader *reader;
    PdSorter *sorter;
    PdRecord round; /* a FINISHED_ROUND that waits for what it let go */
    uint8_t round_bytes[PD_RECORD_HEADER_SIZE];
    bool has_round;
    bool releasing;
    bool at_end;
    PdRounds rounds;
    uint64_t let_go_to; /* all up to here is out */
    uint64_t late;
};

int pd_order_new(PdReader *reader, const PdOrderOptions *options, PdOrder **ret) {
    _cleanup_(pd_order_freep) PdOrder *order = calloc(1, sizeof(*order));
    int r;

    if (!order)
        return -ENOMEM;
    order->reader = reader;
    r = pd_sorter_new(options, &order->sorter);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(order);
    return 0;
}

PdOrder *pd_order_free(PdOrder *order) {
    if (!order)
        return NULL;
    pd_sorter_free(order->sorter);
    free(order);
    return NULL;
}

bool pd_order_applies(const PdReader *reader) {
    const PdEvents *events = pd_reader_events(reader);

    return pd_events_count(events) == 0 ||
           (pd_events_at(events, 0)->attr.flags & PD_ATTR_SAMPLE_ID_ALL);
}

static void order_release(PdOrder *order, uint64_t limit) {
    pd_sorter_release(order->sorter, limit);
    order->let_go_to = MAX(order->let_go_to, limit);
    order->releasing = true;
}

/* The round itself goes out behind what it let go, out of the reader's window by then. */
static void order_end_round(PdOrder *order, const PdRecord *record) {
    order->round = *record;
    order->round.size = MIN(record->size, (uint32_t)sizeof(order->round_bytes));
    memcpy(order->round_bytes, record->data, order->round.size);
    order->round.data = order->round_bytes;
    order->has_round = true;
    order_release(order, pd_rounds_end(&order->rounds));
}

/* Takes one record from the reader: 1 when it goes out at once, 0 when it waits. */
static int order_take_in(PdOrder *order, PdRecord *record, PdStamp *stamp) {
    int r = pd_events_stamp(pd_reader_events(order->reader), record, stamp);

    if (r < 0) /* too short for its event: it has no time to be sorted by */
        *stamp = (PdStamp){};
    if (record->type == PD_RECORD_FINISHED_ROUND &&
        pd_reader_header(order->reader)->mode != PD_MODE_DIRECTORY) {
        order_end_round(order, record);
        return 0;
    }
    if (!stamp->has_time || stamp->time == 0 || stamp->time == UINT64_MAX ||
        !pd_order_applies(order->reader))
        return 1;
    /* A late one goes out with the next round, before what is younger: perf does the same. */
    order->late += stamp->time < order->let_go_to;
    pd_rounds_saw(&order->rounds, stamp->time);
    return pd_sorter_add(order->sorter, record, stamp->time);
}

/* What the last release let go, then the round that did it: 1, 0 when that is all. */
static int order_give_out(PdOrder *order, PdRecord *ret, PdStamp *ret_stamp) {
    uint64_t time;
    int r = pd_sorter_next(order->sorter, ret, &time);

    if (r > 0)
        return pd_events_stamp(pd_reader_events(order->reader), ret, ret_stamp) < 0 ? -EBADMSG : 1;
    if (r < 0)
        return r;
    order->releasing = false;
    if (!order->has_round)
        return 0;
    order->has_round = false;
    *ret = order->round;
    *ret_stamp = (PdStamp){};
    return 1;
}

int pd_order_next(PdOrder *order, PdRecord *ret, PdStamp *ret_stamp) {
    PdRecord record;
    PdStamp stamp;
    int r;

    for (;;) {
        if (order->releasing) {
            r = order_give_out(order, ret, ret_stamp);
            if (r != 0)
                return r;
        }
        if (order->at_end)
            return 0;
        r = pd_reader_next(order->reader, &record);
        if (r < 0)
            return r;
        if (r == 0) {
            order->at_end = true;
            order_release(order, UINT64_MAX);
            continue;
        }
        r = order_take_in(order, &record, &stamp);
        if (r < 0)
            return r;
        if (r > 0) {
            *ret = record;
            *ret_stamp = stamp;
            return 1;
        }
    }
}

uint64_t pd_order_late(const PdOrder *order) {
    return order->late;
}
