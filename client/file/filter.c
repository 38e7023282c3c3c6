/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/filter.h"

#include <errno.h>
#include <string.h>

#include "client/file/recording.h"

/*
 * Side-band before `until` is copied completely, whatever was selected, since samples are resolved
 * with it. An attr is kept if its event was selected or switches side-band on. If events differ in
 * the format of their records, or read each other's values as a group, all attrs are kept, so that
 * a record without an event id, or a value of a group, keeps its meaning.
 */

enum { FILTER_GONE, FILTER_ATTR_STAYS, FILTER_CHOSEN };

static const uint64_t side_band = PD_ATTR_MMAP | PD_ATTR_MMAP2 | PD_ATTR_MMAP_DATA | PD_ATTR_COMM |
                                  PD_ATTR_TASK | PD_ATTR_CONTEXT_SWITCH | PD_ATTR_NAMESPACES |
                                  PD_ATTR_KSYMBOL | PD_ATTR_BPF_EVENT | PD_ATTR_CGROUP |
                                  PD_ATTR_TEXT_POKE;

void filter_done(Filter *filter) {
    filter->kept = pd_events_free(filter->kept);
    filter->rows = pd_rewriter_free(filter->rows);
    filter->losses = pd_rewriter_free(filter->losses);
    free(filter->chosen);
    free(filter->new_index);
    filter->chosen = NULL;
    filter->new_index = NULL;
    buffer_done(&filter->rewritten);
    selector_done(&filter->selector);
}

static bool filter_attrs_may_go(const PdEvents *events) {
    if (!pd_events_uniform(events))
        return false;
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdAttr *attr = &pd_events_at(events, i)->attr;

        if (attr->sample_type & PD_SAMPLE_READ && attr->read_format & PD_FORMAT_GROUP)
            return false;
    }
    return true;
}

static int filter_choose(Filter *filter, const PdEvents *events, const char **ret_name) {
    bool may_go = filter_attrs_may_go(events);

    filter->n_chosen = pd_events_count(events);
    filter->chosen = calloc(filter->n_chosen + 1, 1);
    filter->new_index = calloc(filter->n_chosen + 1, sizeof(*filter->new_index));
    if (!filter->chosen || !filter->new_index)
        return -ENOMEM;
    for (size_t i = 0; i < filter->n_chosen; i++)
        if (!may_go || pd_events_at(events, i)->attr.flags & side_band)
            filter->chosen[i] = FILTER_ATTR_STAYS;
    for (size_t k = 0; k < filter->names->n; k++) {
        const char *name = filter->names->items[k];
        bool any = false;

        for (size_t i = 0; i < filter->n_chosen; i++)
            if (recording_event_matches(name, pd_events_at(events, i)->name)) {
                filter->chosen[i] = FILTER_CHOSEN;
                any = true;
            }
        if (!any) {
            *ret_name = name;
            return -ENOENT;
        }
    }
    return 0;
}

static int filter_keep_event(Filter *filter, const PdEvent *event) {
    PdEvent *kept;
    int r = pd_events_add(filter->kept, &event->attr,
                          (Bytes){.data = event->raw, .size = event->raw_size}, event->ids,
                          event->n_ids, &kept);

    if (r < 0 || !event->name_given)
        return r;
    return pd_events_set_name(
        filter->kept, kept,
        (Bytes){.data = (const uint8_t *)event->name, .size = strlen(event->name)});
}

static int filter_drop_event(Filter *filter, const PdEvent *event, uint64_t heir) {
    for (size_t i = 0; i < event->n_ids; i++) {
        int r = pd_rewriter_drop_id(filter->rows, event->ids[i]);

        if (r == 0)
            r = pd_rewriter_map_id(filter->losses, event->ids[i], heir);
        if (r < 0)
            return r;
    }
    return 0;
}

int filter_begin(Filter *filter, const PdEvents *events, const char **ret_name) {
    uint64_t heir = 0;
    int r;

    if (!filter->names || filter->names->n == 0)
        return 0;
    r = filter_choose(filter, events, ret_name);
    if (r == 0)
        r = pd_events_new(&filter->kept);
    if (r == 0)
        r = pd_rewriter_new(events, &filter->rows);
    if (r == 0)
        r = pd_rewriter_new(events, &filter->losses);
    for (size_t i = 0; r == 0 && i < filter->n_chosen; i++) {
        const PdEvent *event = pd_events_at(events, i);

        filter->new_index[i] = UINT32_MAX;
        if (filter->chosen[i] == FILTER_GONE)
            continue;
        filter->new_index[i] = (uint32_t)pd_events_count(filter->kept);
        heir = heir || event->n_ids == 0 ? heir : event->ids[0];
        r = filter_keep_event(filter, event);
    }
    for (size_t i = 0; r == 0 && i < filter->n_chosen; i++)
        if (filter->chosen[i] == FILTER_GONE)
            r = filter_drop_event(filter, pd_events_at(events, i), heir);
    return r;
}

/* Records about their own event only, which other events do not need. */
static bool filter_is_of_its_event(uint32_t type) {
    switch (type) {
    case PD_RECORD_SAMPLE:
    case PD_RECORD_READ:
    case PD_RECORD_THROTTLE:
    case PD_RECORD_UNTHROTTLE:
    case PD_RECORD_LOST_SAMPLES:
    case PD_RECORD_CALLCHAIN_DEFERRED:
        return true;
    default:
        return false;
    }
}

static bool filter_in_time(const Filter *filter, const PdRecord *record, const PdStamp *stamp) {
    if (!filter->by_time || !stamp->has_time || record->type >= PD_RECORD_USER)
        return true;
    if (stamp->time >= filter->until)
        return false;
    if (!filter_is_of_its_event(record->type) && record->type != PD_RECORD_LOST)
        return true;
    /* A record of a tool at the end, without a time, is about the whole recording. */
    return stamp->time >= filter->since ||
           (stamp->time == 0 && record->type == PD_RECORD_LOST_SAMPLES);
}

/* An event lends itself to records without an id, and to those that a tool made with an id of 0:
 * other events need them as well. */
static bool filter_names_its_event(const PdStamp *stamp) {
    return stamp->has_id && stamp->id != 0;
}

/* Handles a record whose event was not selected or was dropped. */
static int filter_pass_by_event(Filter *filter, PdRecord *record, const PdStamp *stamp) {
    uint8_t choice = stamp->event && stamp->event->index < filter->n_chosen
                         ? filter->chosen[stamp->event->index]
                         : FILTER_ATTR_STAYS;
    bool gone = choice == FILTER_GONE;
    int r;

    if (choice != FILTER_CHOSEN && filter_is_of_its_event(record->type))
        return 0;
    if (!gone && record->type < PD_RECORD_USER)
        return 1;
    if (gone && record->type != PD_RECORD_LOST)
        return !filter_names_its_event(stamp);
    buffer_clear(&filter->rewritten);
    r = pd_rewriter_record(gone ? filter->losses : filter->rows, record, stamp, &filter->rewritten);
    if (r == -EBADMSG)
        return 1;
    if (r > 0) {
        record->data = filter->rewritten.data;
        record->size = (uint32_t)filter->rewritten.size;
    }
    return r;
}

/* Losses have no process, and side-band has the names for samples: both are kept. */
static bool filter_is_selected(Filter *filter, const PdRecord *record, const PdStamp *stamp) {
    return record->type != PD_RECORD_SAMPLE || selector_wants(&filter->selector, record, stamp);
}

int filter_record(Filter *filter, PdRecord *record, const PdStamp *stamp) {
    int r = selector_feed(&filter->selector, record, stamp);

    if (r < 0 || !filter_in_time(filter, record, stamp))
        return r;
    r = filter->chosen ? filter_pass_by_event(filter, record, stamp) : 1;
    if (r > 0 && !filter_is_selected(filter, record, stamp))
        return 0;
    if (r > 0 && record->type == PD_RECORD_SAMPLE && stamp->has_time) {
        filter->last_time = MAX(filter->last_time, stamp->time);
        filter->first_time =
            filter->first_time == 0 ? stamp->time : MIN(filter->first_time, stamp->time);
    }
    return r;
}
