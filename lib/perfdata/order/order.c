/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/order/order.h"

#include <errno.h>

#include "util/macro.h"

/*
 * Sorts a reader's records by time. FINISHED_ROUND releases everything up to the latest time before
 * the previous round; the end of the file releases the rest. The rounds of a directory say nothing
 * about its other files, so there only the end releases.
 */

struct PdOrder {
    PdReader *reader;
    PdSorter *sorter;
    PdRecord round; /* a FINISHED_ROUND that is returned after the records it releases */
    uint8_t round_bytes[PD_RECORD_HEADER_SIZE];
    bool has_round;
    bool releasing;
    bool at_end;
    PdRounds rounds;
    uint64_t let_go_to; /* everything up to this time was returned */
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

/* Keeps a copy of the record, since it is returned after those that it releases and leaves the
 * reader's window before. */
static void order_end_round(PdOrder *order, const PdRecord *record) {
    order->round = *record;
    order->round.size = MIN(record->size, (uint32_t)sizeof(order->round_bytes));
    memcpy(order->round_bytes, record->data, order->round.size);
    order->round.data = order->round_bytes;
    order->has_round = true;
    order_release(order, pd_rounds_end(&order->rounds));
}

/* Takes a record from the reader: 1 when it is returned at once, 0 when it waits. */
static int order_take_in(PdOrder *order, PdRecord *record, PdStamp *stamp) {
    int r = pd_events_stamp(pd_reader_events(order->reader), record, stamp);

    if (r < 0) /* too short for its event: it has no time to sort by */
        *stamp = (PdStamp){};
    if (record->type == PD_RECORD_FINISHED_ROUND &&
        pd_reader_header(order->reader)->mode != PD_MODE_DIRECTORY) {
        order_end_round(order, record);
        return 0;
    }
    if (!stamp->has_time || stamp->time == 0 || stamp->time == UINT64_MAX ||
        !pd_order_applies(order->reader))
        return 1;
    /* A late record is returned with the next round, before younger ones, like in perf. */
    order->late += stamp->time < order->let_go_to;
    pd_rounds_saw(&order->rounds, stamp->time);
    return pd_sorter_add(order->sorter, record, stamp->time);
}

/* Returns what was released last, then the round that released it: 1; 0 when nothing is left. */
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

void pd_order_release(PdOrder *order, uint64_t time) {
    if (time > 0)
        order_release(order, time - 1);
}

bool pd_order_at_end(const PdOrder *order) {
    return order->at_end;
}

uint64_t pd_order_late(const PdOrder *order) {
    return order->late;
}
