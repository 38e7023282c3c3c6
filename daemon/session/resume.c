/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/resume.h"

#include <errno.h>

#include "perfdata/reader/reader.h"

/*
 * A segment holds the samples of a CPU in the order of the CPU's ring, and event ids survive a
 * recorder. So everything in a ring up to the last written sample is written already. If the ring
 * no longer holds that sample, everything older than it is written. Unwound samples lie in the
 * arena between the two: its last sample of a CPU takes the place of the segment's, unless that is
 * newer.
 */

enum { CPUS_MAX = 8192 };

typedef struct Last {
    bool known; /* still to be found in the ring */
    uint64_t id, time;
    uint32_t tid;
} Last;

struct Resume {
    Last cpus[CPUS_MAX], kept[CPUS_MAX];
};

static Last resume_last_of(const PdStamp *stamp) {
    return (Last){.known = true, .id = stamp->id, .time = stamp->time, .tid = stamp->tid};
}

static int resume_take_record(Resume *resume, const PdEvents *events, const PdRecord *record,
                              History *history) {
    PdStamp stamp;
    int r = 0;

    if (pd_events_stamp(events, record, &stamp) < 0 || !stamp.event)
        return 0;
    if (record->type != PD_RECORD_SAMPLE)
        r = history_feed(history, record, stamp.event);
    else if (stamp.cpu < CPUS_MAX)
        resume->cpus[stamp.cpu] = resume_last_of(&stamp);
    return r == -EBADMSG ? 0 : r;
}

int resume_read(Resume *resume, const char *path, History *history) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    PdRecord record;
    int r = pd_reader_open(path, NULL, &reader, NULL);

    while (r >= 0) {
        r = pd_reader_next(reader, &record);
        if (r <= 0)
            return r;
        r = resume_take_record(resume, pd_reader_events(reader), &record, history);
    }
    return r;
}

uint64_t resume_oldest_ns(const Resume *resume) {
    uint64_t oldest = UINT64_MAX;

    for (size_t i = 0; i < CPUS_MAX; i++)
        if (resume->cpus[i].known)
            oldest = MIN(oldest, resume->cpus[i].time);
    return oldest;
}

int resume_new(Resume **ret) {
    Resume *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return -ENOMEM;
    *ret = resume;
    return 0;
}

Resume *resume_free(Resume *resume) {
    free(resume);
    return NULL;
}

static bool resume_is_last(const Last *last, const PdStamp *stamp) {
    return last->id == stamp->id && last->time == stamp->time && last->tid == stamp->tid;
}

Bytes resume_skip(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records) {
    Last *last = cpu < CPUS_MAX ? &resume->cpus[cpu] : NULL;
    uint64_t newest = 0;
    Bytes left = records;
    PdRecord record;
    PdStamp stamp;

    if (!last || !last->known)
        return records;
    while (pd_records_next(&left, &record)) {
        if (record.type != PD_RECORD_SAMPLE || pd_events_stamp(events, &record, &stamp) < 0)
            continue;
        newest = MAX(newest, stamp.time);
        if (!resume_is_last(last, &stamp))
            continue;
        last->known = false;
        return left;
    }
    if (newest < last->time)
        return (Bytes){};
    last->known = false;
    return records;
}

static void resume_note_kept(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records) {
    PdRecord record;
    PdStamp stamp;

    while (pd_records_next(&records, &record))
        if (record.type == PD_RECORD_SAMPLE && pd_events_stamp(events, &record, &stamp) == 0)
            resume->kept[cpu] = resume_last_of(&stamp);
}

Bytes resume_skip_kept(Resume *resume, const PdEvents *events, unsigned cpu, Bytes records) {
    Bytes left = resume_skip(resume, events, cpu, records);

    /* Otherwise the segment has a newer sample than these. */
    if (cpu < CPUS_MAX && !resume->cpus[cpu].known)
        resume_note_kept(resume, events, cpu, records);
    return left;
}

void resume_end_kept(Resume *resume) {
    for (size_t i = 0; i < CPUS_MAX; i++) {
        if (resume->kept[i].known)
            resume->cpus[i] = resume->kept[i];
        resume->kept[i] = (Last){};
    }
}
