/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/rewrite.h"

#include <errno.h>
#include <stdlib.h>

#include "util/hash-index.h"

/*
 * A record is copied first, with room for an IDENTIFIER if one is added, and then changed in place:
 * fields with an id have fixed positions before all fields of variable size, or (in trailers) fixed
 * distances from the end. The ids in the body of each type are a row of `bodies`. The byte order
 * stays the same.
 */

enum {
    FORK_TIME_AT = 16, /* in the body: after pid, ppid, tid, ptid */
    ID_INDEX_ENTRY = 32,
    ID_INDEX_MACHINE = 16,
};

typedef struct IdRow {
    uint64_t from, to;
    bool dropped;
} IdRow;

struct PdRewriter {
    const PdEvents *events;
    IdRow *rows;
    HashIndex index;       /* of rows by from */
    uint64_t *default_ids; /* by index of the event; 0: none */
    size_t n_default_ids;
    uint64_t zero_time;
    bool add_identifier;
};

/* A copy that is being changed: its body without header and trailer. */
typedef struct Patch {
    const PdRewriter *rewriter;
    const PdEvent *event;
    uint8_t *body;
    size_t size;
    bool swap;
} Patch;

int pd_rewriter_new(const PdEvents *events, PdRewriter **ret) {
    PdRewriter *rewriter = calloc(1, sizeof(*rewriter));

    if (!rewriter)
        return -ENOMEM;
    rewriter->events = events;
    *ret = rewriter;
    return 0;
}

PdRewriter *pd_rewriter_free(PdRewriter *rewriter) {
    if (!rewriter)
        return NULL;
    free(rewriter->rows);
    hash_index_done(&rewriter->index);
    free(rewriter->default_ids);
    free(rewriter);
    return NULL;
}

static IdRow *rewrite_row_of(const PdRewriter *rewriter, uint64_t id) {
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&rewriter->index, id, &probe)) > 0;)
        if (rewriter->rows[number - 1].from == id)
            return &rewriter->rows[number - 1];
    return NULL;
}

static int rewrite_rows_set(PdRewriter *rewriter, IdRow row) {
    IdRow *place = rewrite_row_of(rewriter, row.from);

    if (!place)
        place = hash_index_append(&rewriter->index, row.from, &rewriter->rows);
    if (!place)
        return -ENOMEM;
    *place = row;
    return 0;
}

int pd_rewriter_map_id(PdRewriter *rewriter, uint64_t from, uint64_t to) {
    return rewrite_rows_set(rewriter, (IdRow){.from = from, .to = to});
}

int pd_rewriter_drop_id(PdRewriter *rewriter, uint64_t id) {
    return rewrite_rows_set(rewriter, (IdRow){.from = id, .to = id, .dropped = true});
}

int pd_rewriter_set_default_id(PdRewriter *rewriter, const PdEvent *event, uint64_t id) {
    size_t n = (size_t)event->index + 1;

    if (n > rewriter->n_default_ids) {
        uint64_t *grown = reallocarray(rewriter->default_ids, n, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        memset(grown + rewriter->n_default_ids, 0, (n - rewriter->n_default_ids) * sizeof(*grown));
        rewriter->default_ids = grown;
        rewriter->n_default_ids = n;
    }
    rewriter->default_ids[event->index] = id;
    return 0;
}

void pd_rewriter_add_identifier(PdRewriter *rewriter) {
    rewriter->add_identifier = true;
}

void pd_rewriter_set_zero_time(PdRewriter *rewriter, uint64_t time) {
    rewriter->zero_time = time;
}

void pd_attr_add_identifier(PdAttr *attr, uint8_t *raw, size_t raw_size, bool swap) {
    enum { SAMPLE_TYPE_AT = 24 };

    attr->sample_type |= PD_SAMPLE_IDENTIFIER;
    if (raw_size >= SAMPLE_TYPE_AT + 8)
        store_u64(raw + SAMPLE_TYPE_AT, attr->sample_type, swap);
}

static const IdRow *rewrite_lookup(const PdRewriter *rewriter, uint64_t id) {
    return id != 0 ? rewrite_row_of(rewriter, id) : NULL;
}

uint64_t pd_rewriter_id(const PdRewriter *rewriter, uint64_t id) {
    const IdRow *row = rewrite_lookup(rewriter, id);

    return row ? row->to : id;
}

static uint64_t rewrite_default_id(const PdRewriter *rewriter, const PdEvent *event) {
    return event && event->index < rewriter->n_default_ids ? rewriter->default_ids[event->index]
                                                           : 0;
}

static void rewrite_patch_id(const Patch *p, uint8_t *at) {
    store_u64(at, pd_rewriter_id(p->rewriter, load_u64(at, p->swap)), p->swap);
}

/* Replaces the id at an offset of the body; false when the body is too short. */
static bool rewrite_patch_id_at(const Patch *p, uint64_t offset) {
    if (offset > p->size || p->size - offset < 8)
        return false;
    rewrite_patch_id(p, p->body + offset);
    return true;
}

/* Replaces the ids of a read block at an offset: one value or a group, each with its id. */
static bool rewrite_patch_read(const Patch *p, uint64_t offset) {
    uint64_t format = p->event->attr.read_format;
    size_t times = !!(format & PD_FORMAT_TOTAL_TIME_ENABLED) * 8 +
                   !!(format & PD_FORMAT_TOTAL_TIME_RUNNING) * 8;
    size_t each = 16 + !!(format & PD_FORMAT_LOST) * 8;
    uint64_t n;

    if (!(format & PD_FORMAT_ID))
        return true;
    if (!(format & PD_FORMAT_GROUP))
        return rewrite_patch_id_at(p, offset + 8 + times);
    if (offset > p->size || p->size - offset < 8 + times)
        return false;
    n = load_u64(p->body + offset, p->swap);
    offset += 8 + times;
    if (n > (p->size - offset) / each)
        return false;
    for (uint64_t i = 0; i < n; i++)
        rewrite_patch_id(p, p->body + offset + i * each + 8);
    return true;
}

static bool rewrite_patch_sample(const Patch *p) {
    const uint64_t in_front =
        PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ADDR;
    uint64_t had = p->event->attr.sample_type;
    uint64_t type = had | (p->rewriter->add_identifier ? PD_SAMPLE_IDENTIFIER : 0);
    uint64_t at = 8 * (uint64_t)__builtin_popcountll(type & in_front);

    /* An added IDENTIFIER already has its final value. */
    if (had & PD_SAMPLE_IDENTIFIER && !rewrite_patch_id_at(p, 0))
        return false;
    if (type & PD_SAMPLE_ID) {
        if (!rewrite_patch_id_at(p, at))
            return false;
        at += 8;
    }
    if (type & PD_SAMPLE_STREAM_ID) {
        if (!rewrite_patch_id_at(p, at))
            return false;
        at += 8;
    }
    at += 8 * (uint64_t)__builtin_popcountll(type & (PD_SAMPLE_CPU | PD_SAMPLE_PERIOD));
    return !(type & PD_SAMPLE_READ) || rewrite_patch_read(p, at);
}

static bool rewrite_patch_read_record(const Patch *p) {
    return rewrite_patch_read(p, 8);
}

static bool rewrite_patch_task(const Patch *p) {
    uint64_t time = p->rewriter->zero_time;

    if (p->size < FORK_TIME_AT + 8)
        return false;
    if (time != 0 && load_u64(p->body + FORK_TIME_AT, p->swap) == 0)
        store_u64(p->body + FORK_TIME_AT, time, p->swap);
    return true;
}

/* clang-format off */
static const struct {
    uint32_t type;
    bool needs_event;      /* the format of the body depends on the event */
    bool is_about;         /* the record is about the event of its id */
    int16_t id_at[2];      /* offsets of ids in the body; -1: none */
    bool (*patch)(const Patch *p); /* changes what else there is; may be NULL */
} bodies[] = {
    {PD_RECORD_LOST,         false, false, { 0, -1}, NULL},
    {PD_RECORD_EXIT,         false, false, {-1, -1}, rewrite_patch_task},
    {PD_RECORD_THROTTLE,     false, false, { 8, 16}, NULL},
    {PD_RECORD_UNTHROTTLE,   false, false, { 8, 16}, NULL},
    {PD_RECORD_FORK,         false, false, {-1, -1}, rewrite_patch_task},
    {PD_RECORD_READ,         true,  false, {-1, -1}, rewrite_patch_read_record},
    {PD_RECORD_SAMPLE,       true,  false, {-1, -1}, rewrite_patch_sample},
    {PD_RECORD_STAT,         false, true,  { 0, -1}, NULL},
    {PD_RECORD_EVENT_UPDATE, false, true,  { 8, -1}, NULL},
};
/* clang-format on */

static bool rewrite_patch_body(const Patch *p, size_t row) {
    for (size_t i = 0; i < ARRAY_SIZE(bodies[row].id_at); i++)
        if (bodies[row].id_at[i] >= 0 && !rewrite_patch_id_at(p, (uint64_t)bodies[row].id_at[i]))
            return false;
    return !bodies[row].patch || bodies[row].patch(p);
}

/* From the end: IDENTIFIER, CPU, STREAM_ID, ID, TIME, TID. */
static void rewrite_patch_trailer(const Patch *p, uint8_t *end) {
    uint64_t type = p->event->attr.sample_type;
    uint64_t id = rewrite_default_id(p->rewriter, p->event);
    uint8_t *at = end;

    if (type & PD_SAMPLE_IDENTIFIER) {
        at -= 8;
        rewrite_patch_id(p, at);
        if (load_u64(at, p->swap) == 0)
            store_u64(at, id, p->swap);
    } else if (p->rewriter->add_identifier) {
        at -= 8;
    }
    at -= type & PD_SAMPLE_CPU ? 8 : 0;
    if (type & PD_SAMPLE_STREAM_ID) {
        at -= 8;
        rewrite_patch_id(p, at);
    }
    if (type & PD_SAMPLE_ID) {
        at -= 8;
        rewrite_patch_id(p, at);
        if (load_u64(at, p->swap) == 0)
            store_u64(at, id, p->swap);
    }
    if (type & PD_SAMPLE_TIME) {
        at -= 8;
        if (p->rewriter->zero_time != 0 && load_u64(at, p->swap) == 0)
            store_u64(at, p->rewriter->zero_time, p->swap);
    }
}

static bool rewrite_about_dropped(const PdRewriter *rewriter, const PdRecord *record, int16_t at) {
    const IdRow *row;

    if (record->size < PD_RECORD_HEADER_SIZE + (uint32_t)at + 8)
        return false;
    row =
        rewrite_lookup(rewriter, load_u64(record->data + PD_RECORD_HEADER_SIZE + at, record->swap));
    return row && row->dropped;
}

static int rewrite_id_index(const PdRewriter *rewriter, const PdRecord *record, Buffer *out) {
    Cursor c = pd_record_cursor(record);
    uint64_t n = cursor_u64(&c), kept = 0;
    Bytes entries = cursor_array(&c, n, ID_INDEX_ENTRY), machines = {};
    size_t start = out->size;

    if (!c.failed && cursor_left(&c) > 0)
        machines = cursor_array(&c, n, ID_INDEX_MACHINE);
    if (c.failed)
        return -EBADMSG;
    buffer_append(out, record->data, PD_RECORD_HEADER_SIZE);
    buffer_u64(out, 0, record->swap);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *entry = entries.data + i * ID_INDEX_ENTRY;
        uint64_t id = load_u64(entry, record->swap);
        const IdRow *row = rewrite_lookup(rewriter, id);

        if (row && row->dropped)
            continue;
        buffer_u64(out, row ? row->to : id, record->swap);
        buffer_append(out, entry + 8, ID_INDEX_ENTRY - 8);
        kept++;
    }
    for (uint64_t i = 0; machines.size > 0 && i < n; i++) {
        const IdRow *row =
            rewrite_lookup(rewriter, load_u64(entries.data + i * ID_INDEX_ENTRY, record->swap));

        if (!row || !row->dropped)
            buffer_append(out, machines.data + i * ID_INDEX_MACHINE, ID_INDEX_MACHINE);
    }
    if (buffer_error(out) < 0)
        return buffer_error(out);
    if (kept == 0) {
        out->size = start;
        return 0;
    }
    store_u64(out->data + start + PD_RECORD_HEADER_SIZE, kept, record->swap);
    store_u16(out->data + start + 6, (uint16_t)(out->size - start), record->swap);
    return 1;
}

/* Appends the record with an IDENTIFIER before its body or after its trailer. */
static int rewrite_copy_with_identifier(const PdRewriter *rewriter, const PdRecord *record,
                                        const PdStamp *stamp, Buffer *out) {
    size_t start = out->size;
    /* An event without ids in the recording has a generated one. */
    uint64_t id = stamp->has_id && pd_events_by_id(rewriter->events, stamp->id)
                      ? pd_rewriter_id(rewriter, stamp->id)
                      : rewrite_default_id(rewriter, stamp->event);

    if (record->size > UINT16_MAX - 8)
        return -EMSGSIZE;
    buffer_append(out, record->data, PD_RECORD_HEADER_SIZE);
    if (record->type == PD_RECORD_SAMPLE)
        buffer_u64(out, id, record->swap);
    buffer_append(out, record->data + PD_RECORD_HEADER_SIZE, record->size - PD_RECORD_HEADER_SIZE);
    if (record->type != PD_RECORD_SAMPLE)
        buffer_u64(out, id, record->swap);
    if (buffer_error(out) < 0)
        return buffer_error(out);
    store_u16(out->data + start + 6, (uint16_t)(record->size + 8), record->swap);
    return 0;
}

static bool rewrite_lacks_identifier(const PdEvent *event, const PdRecord *record) {
    if (event->attr.sample_type & PD_SAMPLE_IDENTIFIER)
        return false;
    return record->type == PD_RECORD_SAMPLE || event->attr.flags & PD_ATTR_SAMPLE_ID_ALL;
}

/* Changes the copy at `start`: its trailer, then its body by the row of its type. */
static int rewrite_patch_copy(Patch *p, const PdRecord *record, size_t row, Buffer *out,
                              size_t start) {
    size_t size = out->size - start - PD_RECORD_HEADER_SIZE;
    size_t trailer = 0;

    p->body = out->data + start + PD_RECORD_HEADER_SIZE;
    if (record->type != PD_RECORD_SAMPLE && record->type < PD_RECORD_USER && p->event) {
        trailer = p->event->trailer_size;
        if (p->rewriter->add_identifier && rewrite_lacks_identifier(p->event, record))
            trailer += 8;
        if (trailer > size)
            return -EBADMSG;
        if (trailer > 0)
            rewrite_patch_trailer(p, p->body + size);
    }
    p->size = size - trailer;
    return row == ARRAY_SIZE(bodies) || rewrite_patch_body(p, row) ? 0 : -EBADMSG;
}

int pd_rewriter_record(const PdRewriter *rewriter, const PdRecord *record, const PdStamp *stamp,
                       Buffer *out) {
    Patch p = {.rewriter = rewriter, .event = stamp->event, .swap = record->swap};
    bool of_kernel = record->type < PD_RECORD_USER;
    size_t start = out->size, row = 0;
    int r = 0;

    if (record->type == PD_RECORD_ID_INDEX)
        return rewrite_id_index(rewriter, record, out);
    while (row < ARRAY_SIZE(bodies) && bodies[row].type != record->type)
        row++;
    if (row < ARRAY_SIZE(bodies) && bodies[row].is_about &&
        rewrite_about_dropped(rewriter, record, bodies[row].id_at[0]))
        return 0;
    if (!p.event && ((row < ARRAY_SIZE(bodies) && bodies[row].needs_event) ||
                     (of_kernel && rewriter->add_identifier)))
        return -EBADMSG;
    if (of_kernel && rewriter->add_identifier && rewrite_lacks_identifier(p.event, record))
        r = rewrite_copy_with_identifier(rewriter, record, stamp, out);
    else
        buffer_append(out, record->data, record->size);
    if (r == 0)
        r = buffer_error(out);
    if (r == 0)
        r = rewrite_patch_copy(&p, record, row, out, start);
    if (r < 0) {
        out->size = MIN(out->size, start);
        return r;
    }
    return 1;
}
