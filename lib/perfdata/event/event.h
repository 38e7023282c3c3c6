/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events: what a recording counted. A PdEvents is the table of a recording's events in attr order.
 * It finds the event of an id, and so of any record. Each event keeps the bytes of its attr as they
 * stood on disk, so that a copy is exact even where the file is newer than we are.
 *
 * A PdEvents belongs to whoever made it; the reader's lives as long as the reader. A pointer to a
 * PdEvent stays good until its table is freed: events are added, never moved or removed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfdata/event/attr.h"
#include "perfdata/event/record-view.h"
#include "util/buffer.h"
#include "util/bytes.h"

typedef struct PdEvent {
    uint32_t index;  /* in attr order */
    uint32_t leader; /* index of the event that leads its group; its own where there is none */
    PdAttr attr;
    uint8_t
        *raw; /* the attr's bytes as on disk, in the file's byte order; NULL: made on this host */
    size_t raw_size;
    uint64_t *ids;
    size_t n_ids;
    char *name;      /* from EVENT_DESC, EVENT_UPDATE or event_types, else derived; never NULL */
    bool name_given; /* by the file, not derived from the attr */
    char *unit;
    double scale;

    /* Where the fields of a stamp stand: in a SAMPLE as offsets from the end of the record header,
     * in the trailer of other records as distances back from the record's end; -1: not there. */
    struct {
        int16_t id, time, tid, cpu;
    } in_sample, in_trailer;
    uint16_t sample_reach; /* the bytes of a sample's body in which the fields of a stamp lie */
    uint16_t trailer_size; /* 0 without sample_id_all */
} PdEvent;

typedef struct PdEvents PdEvents;

int pd_events_new(PdEvents **ret);
PdEvents *pd_events_free(PdEvents *events);
DEFINE_CLEANUP(PdEvents *, pd_events_free);

/* Adds an event; raw may be empty, of a longer one the first 4096 bytes are kept. Bounded: -E2BIG
 * past 65,536 events or 4 Mi ids in all. An id that is taken already stays with the event that had
 * it first. */
int pd_events_add(PdEvents *events, const PdAttr *attr, Bytes raw, const uint64_t *ids,
                  size_t n_ids, PdEvent **ret);
/* The same event again, of another table. */
int pd_events_copy(PdEvents *events, const PdEvent *from);
int pd_events_add_ids(PdEvents *events, PdEvent *event, const uint64_t *ids, size_t n_ids);
/* A name that the file gives; an empty one changes nothing. */
int pd_events_set_name(PdEvents *events, PdEvent *event, Bytes name);
int pd_events_set_unit(PdEvents *events, PdEvent *event, Bytes unit);
size_t pd_events_count(const PdEvents *events);
PdEvent *pd_events_at(const PdEvents *events, size_t index);
/* NULL when no event has it. */
PdEvent *pd_events_by_id(const PdEvents *events, uint64_t id);
/* All events agree on sample_type, read_format and flags that shape a sample. */
bool pd_events_uniform(const PdEvents *events);

/* What every record of the kernel tells about itself, found without parsing the rest of it. */
typedef struct PdStamp {
    const PdEvent *event; /* NULL: a tool's record, or an id that no event has */
    uint64_t id;
    uint64_t time;
    uint32_t pid, tid, cpu;
    bool has_id, has_time, has_tid, has_cpu;
} PdStamp;

/* Returns 0, or -EBADMSG when a record is too short for the fields that its event announces (*ret
 * then names the event, where it could be told, and nothing else). A tool's record (type >=
 * PD_RECORD_USER) gives an empty stamp. The only event is meant whatever the id says; of several,
 * the first one where there is no id or (records that a tool made up) it is 0. Such a record's time
 * is 0 as well, which means none. */
int pd_events_stamp(const PdEvents *events, const PdRecord *record, PdStamp *ret);
