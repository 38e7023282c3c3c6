/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events: what a recording counted. A PdAttr is one perf_event_attr in host order, with its bytes
 * as they stood on disk, so that a copy is exact even where the file is newer than we are. A
 * PdEvents is the table of a recording's events in attr order, with the way from an id, and so
 * from any record, to its event.
 *
 * A PdEvents belongs to whoever made it; the reader's lives as long as the reader. A pointer to a
 * PdEvent stays good until its table is freed: events are added, never moved or removed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfdata/format.h"
#include "util/buffer.h"
#include "util/bytes.h"
#include "util/fields.h"

typedef struct PdAttr {
    uint32_t type;
    uint32_t size; /* as the file says, which may be more than we know */
    uint64_t config;
    uint64_t sample_period; /* the frequency with PD_ATTR_FREQ */
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags;         /* PD_ATTR_* */
    uint32_t wakeup_events; /* the watermark with PD_ATTR_WATERMARK */
    uint32_t bp_type;
    uint64_t config1;
    uint64_t config2;
    uint64_t branch_sample_type;
    uint64_t sample_regs_user;
    uint32_t sample_stack_user;
    int32_t clockid;
    uint64_t sample_regs_intr;
    uint32_t aux_watermark;
    uint16_t sample_max_stack;
    uint32_t aux_sample_size;
    uint32_t aux_action;
    uint64_t sig_data;
    uint64_t config3;
    uint64_t config4;
} PdAttr;

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
typedef struct PdRecord PdRecord;

/* Bytes of a perf_event_attr <-> PdAttr. Any size from 64 up; fields beyond `bytes` read as zero.
 * Returns -EBADMSG when fewer than 64 bytes are there. */
int pd_attr_parse(PdAttr *ret, Bytes bytes, bool swap);
/* The smallest attr.size of the published ones that holds every field that is not zero. */
uint32_t pd_attr_size_needed(const PdAttr *attr);
/* Appends exactly `size` bytes (a multiple of 8, 64 or more), attr.size being set to it. */
void pd_attr_encode(const PdAttr *attr, uint32_t size, Buffer *out, bool swap);
void pd_attr_describe(const PdAttr *attr, Fields *fields);
/* perf's name for the attr alone ("cpu-clock:u", "raw 0x1c2", "mem:0x1000:rw"); where perf itself
 * has none, "tracepoint#12" and "type 8 config 0x4000". Never empty. */
void pd_attr_name(const PdAttr *attr, Buffer *out);

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
