/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A PdEvents is the table of a recording's events in attr order. It finds the event of an id, and
 * so of any record. Each event keeps the bytes of its attr as they were on disk, so that a copy is
 * exact even if the file is newer than this code.
 *
 * The creator of a PdEvents frees it; the reader's lives as long as the reader. A pointer to a
 * PdEvent is valid until its table is freed: events are added, but never moved or removed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfdata/event/attr.h"
#include "perfdata/event/record-view.h"
#include "util/buffer.h"
#include "util/bytes.h"

/* Offsets of the fields of a stamp: in a SAMPLE from the end of the record header, in the trailer
 * of other records back from the end of the record; -1: absent. */
typedef struct PdStampPlaces {
    int16_t id, time, tid, cpu;
} PdStampPlaces;

typedef struct PdEvent {
    uint32_t index;  /* in attr order */
    uint32_t leader; /* index of the event that leads its group; its own index if it has no group */
    PdAttr attr;
    uint8_t *raw; /* the attr's bytes as on disk, in the file's byte order; NULL: made here */
    size_t raw_size;
    uint64_t *ids;
    size_t n_ids;
    char *name;      /* from EVENT_DESC, EVENT_UPDATE or event_types, else derived; never NULL */
    bool name_given; /* the name comes from the file, not from the attr */
    char *unit;
    double scale;

    PdStampPlaces in_sample, in_trailer;
    uint16_t sample_reach; /* the size of the part of a sample's body that contains the stamp */
    uint16_t trailer_size; /* 0 without sample_id_all */
} PdEvent;

typedef struct PdEvents PdEvents;

int pd_events_new(PdEvents **ret);
PdEvents *pd_events_free(PdEvents *events);
DEFINE_CLEANUP(PdEvents *, pd_events_free);

/* Adds an event; raw may be empty and is cut to 4096 bytes. Bounded: -E2BIG beyond 65,536 events or
 * 4 Mi ids in total. An id that is already used stays with the first event that had it. */
int pd_events_add(PdEvents *events, const PdAttr *attr, Bytes raw, const uint64_t *ids,
                  size_t n_ids, PdEvent **ret);
/* Adds a copy of an event of another table. */
int pd_events_copy(PdEvents *events, const PdEvent *from);
int pd_events_add_ids(PdEvents *events, PdEvent *event, const uint64_t *ids, size_t n_ids);
/* Sets a name from the file; an empty one changes nothing. */
int pd_events_set_name(PdEvents *events, PdEvent *event, Bytes name);
int pd_events_set_unit(PdEvents *events, PdEvent *event, Bytes unit);
size_t pd_events_count(const PdEvents *events);
PdEvent *pd_events_at(const PdEvents *events, size_t index);
/* NULL when no event has it. */
PdEvent *pd_events_by_id(const PdEvents *events, uint64_t id);
/* Whether all events agree on sample_type, read_format and the flags that shape a sample. */
bool pd_events_uniform(const PdEvents *events);

/* The fields that every kernel record has, found without parsing the rest of it. */
typedef struct PdStamp {
    const PdEvent *event; /* NULL: a tool's record, or an unknown id */
    uint64_t id;
    uint64_t time;
    uint32_t pid, tid, cpu;
    bool has_id, has_time, has_tid, has_cpu;
} PdStamp;

/* Returns 0, or -EBADMSG when a record is too short for the fields of its event (*ret then has at
 * most the event). A tool's record (type >= PD_RECORD_USER) has an empty stamp. If there is only
 * one event, it is used whatever the id says; of several, the first one is used if the record has
 * no id or its id is 0 (records made by a tool). The time of such a record is 0 as well, which
 * means none. */
int pd_events_stamp(const PdEvents *events, const PdRecord *record, PdStamp *ret);
/* The same, and cheaper for samples that follow each other: *stamp is that of the record before, at
 * first it is empty. */
int pd_events_stamp_next(const PdEvents *events, const PdRecord *record, PdStamp *stamp);
