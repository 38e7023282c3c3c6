/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/event/event.h"

#include <errno.h>

#include "perfdata/event/format.h"
#include "util/hash-index.h"
#include "util/macro.h"

/*
 * The table of a recording's events, and how to find the event of a record. Each event's sample
 * layout is computed once, when it is added, so that a stamp costs a few loads and one hash lookup.
 * The position of an id depends on its event. So the table keeps the few positions that occur among
 * its events (one, except in recordings that mix events without IDENTIFIER) and accepts an id only
 * if its event has it at that position.
 */

enum {
    EVENTS_MAX = 65536,
    IDS_MAX = 4 * 1024 * 1024,
    RAW_MAX = 4096, /* the kernel rejects attrs larger than a page */
    PLACES_MAX = 8, /* different positions of the id in samples or trailers */
    TEXT_MAX = 4096,
};

typedef struct IdRow {
    uint64_t id;
    PdEvent *event;
} IdRow;

typedef struct IdPlaces {
    int16_t at[PLACES_MAX];
    unsigned n;
    const PdEvent *nowhere; /* the first event whose records have no id */
} IdPlaces;

struct PdEvents {
    PdEvent **items;
    size_t n, allocated;
    IdRow *ids; /* each id once */
    size_t n_ids;
    HashIndex index; /* of ids */
    IdPlaces sample_places, trailer_places;
    bool uniform;
    bool same_layout; /* all events have the fields of a stamp at the same positions */
};

int pd_events_new(PdEvents **ret) {
    PdEvents *events = calloc(1, sizeof(*events));

    if (!events)
        return -ENOMEM;
    events->uniform = events->same_layout = true;
    *ret = events;
    return 0;
}

static PdEvent *event_free(PdEvent *event) {
    if (!event)
        return NULL;
    free(event->raw);
    free(event->ids);
    free(event->name);
    free(event->unit);
    free(event);
    return NULL;
}

DEFINE_CLEANUP(PdEvent *, event_free);

PdEvents *pd_events_free(PdEvents *events) {
    if (!events)
        return NULL;
    for (size_t i = 0; i < events->n; i++)
        event_free(events->items[i]);
    free(events->items);
    free(events->ids);
    hash_index_done(&events->index);
    free(events);
    return NULL;
}

/* Each of these fields has 8 bytes; `place` is the member of PdStampPlaces, or -1. */
typedef struct StampField {
    uint64_t bit;
    int place;
} StampField;

/* clang-format off */
/* Fields after PERIOD do not matter here. */
static const StampField sample_fields[] = {
    {PD_SAMPLE_IDENTIFIER, offsetof(PdStampPlaces, id)},
    {PD_SAMPLE_IP,         -1},
    {PD_SAMPLE_TID,        offsetof(PdStampPlaces, tid)},
    {PD_SAMPLE_TIME,       offsetof(PdStampPlaces, time)},
    {PD_SAMPLE_ADDR,       -1},
    {PD_SAMPLE_ID,         offsetof(PdStampPlaces, id)},
    {PD_SAMPLE_STREAM_ID,  -1},
    {PD_SAMPLE_CPU,        offsetof(PdStampPlaces, cpu)},
};
/* From the end. */
static const StampField trailer_fields[] = {
    {PD_SAMPLE_IDENTIFIER, offsetof(PdStampPlaces, id)},
    {PD_SAMPLE_CPU,        offsetof(PdStampPlaces, cpu)},
    {PD_SAMPLE_STREAM_ID,  -1},
    {PD_SAMPLE_ID,         offsetof(PdStampPlaces, id)},
    {PD_SAMPLE_TIME,       offsetof(PdStampPlaces, time)},
    {PD_SAMPLE_TID,        offsetof(PdStampPlaces, tid)},
};
/* clang-format on */

/* Returns the size of the fields. The first of two ids counts. */
static uint16_t event_lay_out(uint64_t type, const StampField *fields, size_t n, bool back,
                              PdStampPlaces *ret) {
    int16_t at = 0;

    *ret = (PdStampPlaces){.id = -1, .time = -1, .tid = -1, .cpu = -1};
    for (size_t i = 0; i < n; i++) {
        int16_t *place = fields[i].place < 0 ? NULL : (int16_t *)((char *)ret + fields[i].place);

        if (!(type & fields[i].bit))
            continue;
        if (place && *place < 0)
            *place = (int16_t)(back ? at + 8 : at);
        at += 8;
    }
    return (uint16_t)at;
}

static void event_places_add(IdPlaces *places, int16_t at, const PdEvent *event) {
    if (at < 0) {
        places->nowhere = places->nowhere ?: event;
        return;
    }
    for (unsigned i = 0; i < places->n; i++)
        if (places->at[i] == at)
            return;
    assert(places->n < PLACES_MAX);
    places->at[places->n++] = at;
}

static void event_compare_with_first(PdEvents *events, const PdEvent *event) {
    const PdEvent *first = events->items[0];

    if (event->attr.sample_type != first->attr.sample_type ||
        event->attr.read_format != first->attr.read_format ||
        event->attr.branch_sample_type != first->attr.branch_sample_type ||
        event->attr.sample_regs_user != first->attr.sample_regs_user ||
        event->attr.sample_regs_intr != first->attr.sample_regs_intr ||
        ((event->attr.flags ^ first->attr.flags) & PD_ATTR_SAMPLE_ID_ALL))
        events->uniform = false;
    if (memcmp(&event->in_sample, &first->in_sample, sizeof(first->in_sample)) != 0 ||
        memcmp(&event->in_trailer, &first->in_trailer, sizeof(first->in_trailer)) != 0)
        events->same_layout = false;
}

static int event_events_grow(PdEvents *events) {
    size_t allocated = events->allocated ? events->allocated * 2 : 8;
    PdEvent **items;

    if (events->n >= EVENTS_MAX)
        return -E2BIG;
    if (events->n < events->allocated)
        return 0;
    items = reallocarray(events->items, allocated, sizeof(*items));
    if (!items)
        return -ENOMEM;
    events->items = items;
    events->allocated = allocated;
    return 0;
}

static int event_name_itself(PdEvent *event) {
    _cleanup_(buffer_done) Buffer name = {};

    pd_attr_name(&event->attr, &name);
    buffer_zero(&name, 1);
    if (buffer_error(&name) < 0)
        return buffer_error(&name);
    event->name = (char *)TAKE_PTR(name.data);
    return 0;
}

int pd_events_add(PdEvents *events, const PdAttr *attr, Bytes raw, const uint64_t *ids,
                  size_t n_ids, PdEvent **ret) {
    _cleanup_(event_freep) PdEvent *event = calloc(1, sizeof(*event));
    int r;

    if (!event)
        return -ENOMEM;
    if (n_ids > IDS_MAX - events->n_ids)
        return -E2BIG;
    r = event_events_grow(events);
    if (r < 0)
        return r;
    event->index = event->leader = (uint32_t)events->n;
    event->attr = *attr;
    event->scale = 1;
    if (raw.size > 0) {
        event->raw_size = MIN(raw.size, (size_t)RAW_MAX);
        event->raw = malloc(event->raw_size);
        if (!event->raw)
            return -ENOMEM;
        memcpy(event->raw, raw.data, event->raw_size);
    }
    r = event_name_itself(event);
    if (r < 0)
        return r;
    r = pd_events_add_ids(events, event, ids, n_ids);
    if (r < 0)
        return r;
    event->sample_reach = event_lay_out(attr->sample_type, sample_fields, ARRAY_SIZE(sample_fields),
                                        false, &event->in_sample);
    event->trailer_size =
        event_lay_out(attr->flags & PD_ATTR_SAMPLE_ID_ALL ? attr->sample_type : 0, trailer_fields,
                      ARRAY_SIZE(trailer_fields), true, &event->in_trailer);
    event_places_add(&events->sample_places, event->in_sample.id, event);
    event_places_add(&events->trailer_places, event->in_trailer.id, event);
    events->items[events->n++] = event;
    event_compare_with_first(events, event);
    if (ret)
        *ret = event;
    (void)TAKE_PTR(event);
    return 0;
}

static int event_add_id(PdEvents *events, PdEvent *event, uint64_t id) {
    IdRow *row;

    if (pd_events_by_id(events, id))
        return 0;
    row = hash_index_append(&events->index, id, &events->ids);
    if (!row)
        return -ENOMEM;
    *row = (IdRow){.id = id, .event = event};
    return 0;
}

int pd_events_add_ids(PdEvents *events, PdEvent *event, const uint64_t *ids, size_t n_ids) {
    uint64_t *grown;
    int r = 0;

    if (n_ids == 0)
        return 0;
    if (n_ids > IDS_MAX - events->n_ids)
        return -E2BIG;
    grown = reallocarray(event->ids, event->n_ids + n_ids, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    event->ids = grown;
    memcpy(event->ids + event->n_ids, ids, n_ids * sizeof(*ids));
    event->n_ids += n_ids;
    events->n_ids += n_ids;
    for (size_t i = 0; r == 0 && i < n_ids; i++)
        r = event_add_id(events, event, ids[i]);
    return r;
}

static int event_set_string(char **string, Bytes value) {
    char *copy = strndup((const char *)value.data, MIN(value.size, (size_t)TEXT_MAX));

    if (!copy)
        return -ENOMEM;
    free(*string);
    *string = copy;
    return 0;
}

int pd_events_set_name(PdEvents *events, PdEvent *event, Bytes name) {
    int r;

    if (name.size == 0 || name.data[0] == '\0')
        return 0;
    r = event_set_string(&event->name, name);
    if (r < 0)
        return r;
    event->name_given = true;
    return 0;
}

int pd_events_set_unit(PdEvents *events, PdEvent *event, Bytes unit) {
    return unit.size == 0 ? 0 : event_set_string(&event->unit, unit);
}

int pd_events_copy(PdEvents *events, const PdEvent *from) {
    Bytes raw = {.data = from->raw, .size = from->raw ? from->raw_size : 0};
    PdEvent *event;
    int r = pd_events_add(events, &from->attr, raw, from->ids, from->n_ids, &event);

    if (r == 0 && from->name_given)
        r = pd_events_set_name(
            events, event,
            (Bytes){.data = (const uint8_t *)from->name, .size = strlen(from->name)});
    if (r == 0 && from->unit)
        r = pd_events_set_unit(
            events, event,
            (Bytes){.data = (const uint8_t *)from->unit, .size = strlen(from->unit)});
    if (r < 0)
        return r;
    event->scale = from->scale;
    event->leader = from->leader;
    return 0;
}

size_t pd_events_count(const PdEvents *events) {
    return events->n;
}

PdEvent *pd_events_at(const PdEvents *events, size_t index) {
    assert(index < events->n);
    return events->items[index];
}

PdEvent *pd_events_by_id(const PdEvents *events, uint64_t id) {
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&events->index, id, &probe)) > 0;)
        if (events->ids[number - 1].id == id)
            return events->ids[number - 1].event;
    return NULL;
}

bool pd_events_uniform(const PdEvents *events) {
    return events->uniform;
}

/* The position of the id if the record has it at `at`; NULL: the record is too short. */
static const uint8_t *event_id_at(const PdRecord *record, int16_t at) {
    size_t n = record->size - PD_RECORD_HEADER_SIZE;

    if (record->type == PD_RECORD_SAMPLE)
        return (size_t)at + 8 > n ? NULL : record->data + PD_RECORD_HEADER_SIZE + at;
    return (size_t)at > n ? NULL : record->data + record->size - at;
}

/* Tries each position at which the events have their ids; the right one leads to an event with the
 * id at that position. Records that a tool made have an id of 0. */
static const PdEvent *event_of(const PdEvents *events, const PdRecord *record) {
    bool sample = record->type == PD_RECORD_SAMPLE;
    const IdPlaces *places = sample ? &events->sample_places : &events->trailer_places;
    bool made_up = false;

    if (events->n == 1)
        return events->items[0];
    for (unsigned i = 0; i < places->n; i++) {
        const uint8_t *p = event_id_at(record, places->at[i]);
        const PdEvent *event;
        uint64_t id;

        if (!p)
            continue;
        id = load_u64(p, record->swap);
        event = pd_events_by_id(events, id);
        if (event && (sample ? event->in_sample.id : event->in_trailer.id) == places->at[i])
            return event;
        made_up |= id == 0;
    }
    return places->nowhere ?: made_up ? events->items[0] : NULL;
}

/* Places count from `base`, forward (1) or back (-1). */
static inline void event_stamp_at(const uint8_t *base, int direction, const PdStampPlaces *places,
                                  bool swap, PdStamp *s) {
    if ((s->has_id = places->id >= 0))
        s->id = load_u64(base + direction * places->id, swap);
    if ((s->has_tid = places->tid >= 0)) {
        s->pid = load_u32(base + direction * places->tid, swap);
        s->tid = load_u32(base + direction * places->tid + 4, swap);
    }
    if ((s->has_time = places->time >= 0))
        s->time = load_u64(base + direction * places->time, swap);
    if ((s->has_cpu = places->cpu >= 0))
        s->cpu = load_u32(base + direction * places->cpu, swap);
}

int pd_events_stamp(const PdEvents *events, const PdRecord *record, PdStamp *ret) {
    const PdEvent *layout;

    *ret = (PdStamp){};
    if (record->size < PD_RECORD_HEADER_SIZE)
        return -EBADMSG;
    if (record->type >= PD_RECORD_USER || events->n == 0)
        return 0;
    ret->event = event_of(events, record);
    /* A record with an unknown id still has a time if all events have theirs at the same
     * position. */
    layout = ret->event ?: events->same_layout ? events->items[0] : NULL;
    if (!layout)
        return 0;
    if ((record->type == PD_RECORD_SAMPLE ? layout->sample_reach : layout->trailer_size) >
        record->size - PD_RECORD_HEADER_SIZE)
        return -EBADMSG;
    if (record->type == PD_RECORD_SAMPLE)
        event_stamp_at(record->data + PD_RECORD_HEADER_SIZE, 1, &layout->in_sample, record->swap,
                       ret);
    else
        event_stamp_at(record->data + record->size, -1, &layout->in_trailer, record->swap, ret);
    return 0;
}

int pd_events_stamp_next(const PdEvents *events, const PdRecord *record, PdStamp *stamp) {
    const PdEvent *event = stamp->event;
    const uint8_t *id = event && stamp->has_id && record->type == PD_RECORD_SAMPLE &&
                                record->size >= PD_RECORD_HEADER_SIZE + (size_t)event->sample_reach
                            ? event_id_at(record, event->in_sample.id)
                            : NULL;

    if (!id || load_u64(id, record->swap) != stamp->id)
        return pd_events_stamp(events, record, stamp);
    event_stamp_at(record->data + PD_RECORD_HEADER_SIZE, 1, &event->in_sample, record->swap, stamp);
    return 0;
}
