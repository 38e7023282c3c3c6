/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/tally.h"

#include <errno.h>

#include "perfdata/writer/bare-mapping.h"
#include "perfdata/writer/encode.h"
#include "util/hash-index.h"
#include "util/macro.h"

/*
 * Every record is examined once: a sample gives its time, an MMAP2 with a build id (or a BUILD_ID
 * record) an entry of a set. The set is a list of entries, the names in one buffer, and an
 * index; it only grows.
 */

enum {
    BUILD_IDS_MAX = 65536,
    NAMES_MAX = 16 * 1024 * 1024,
    BUILD_ID_MAX = 20,
};

typedef struct Entry {
    uint32_t pid;
    uint16_t cpumode;
    uint8_t size;
    uint8_t build_id[BUILD_ID_MAX];
    uint32_t name_at, name_size; /* in names */
} Entry;

struct PdTally {
    PdTallyTotals totals;
    BareMappings *bare;
    Buffer entries; /* of Entry */
    Buffer names;
    HashIndex index; /* of entries */
    uint64_t seed;
};

int pd_tally_new(PdTally **ret) {
    _cleanup_(pd_tally_freep) PdTally *tally = calloc(1, sizeof(*tally));
    int r = tally ? bare_mappings_new(&tally->bare) : -ENOMEM;

    if (r < 0)
        return r;
    tally->seed = hash_seed();
    *ret = TAKE_PTR(tally);
    return 0;
}

PdTally *pd_tally_free(PdTally *tally) {
    if (!tally)
        return NULL;
    bare_mappings_free(tally->bare);
    buffer_done(&tally->entries);
    buffer_done(&tally->names);
    hash_index_done(&tally->index);
    free(tally);
    return NULL;
}

PdTallyTotals pd_tally_totals(const PdTally *tally) {
    PdTallyTotals totals = tally->totals;

    totals.n_unidentified = bare_mappings_files(tally->bare);
    return totals;
}

static Entry *tally_entry_at(const PdTally *tally, size_t i) {
    return (Entry *)(void *)tally->entries.data + i;
}

static Bytes tally_entry_name(const PdTally *tally, const Entry *entry) {
    return (Bytes){.data = tally->names.data + entry->name_at, .size = entry->name_size};
}

static bool tally_entry_is(const PdTally *tally, const Entry *e, const Entry *entry, Bytes name) {
    return e->pid == entry->pid && e->cpumode == entry->cpumode && e->size == entry->size &&
           memcmp(e->build_id, entry->build_id, BUILD_ID_MAX) == 0 &&
           bytes_equal(tally_entry_name(tally, e), name);
}

static int tally_keep(PdTally *tally, Entry entry, Bytes name) {
    Bytes build_id = {.data = entry.build_id, .size = entry.size};
    uint64_t key = hash_bytes(hash_bytes(tally->seed, build_id), name);
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&tally->index, key, &probe)) > 0;)
        if (tally_entry_is(tally, tally_entry_at(tally, number - 1), &entry, name))
            return 0;
    if (tally->index.n >= BUILD_IDS_MAX || name.size > NAMES_MAX - tally->names.size) {
        tally->totals.build_ids_full = true;
        return 0;
    }
    entry.name_at = (uint32_t)tally->names.size;
    entry.name_size = (uint32_t)name.size;
    if (!buffer_reserve(&tally->entries, sizeof(entry)) ||
        !buffer_reserve(&tally->names, name.size + 1) || hash_index_add(&tally->index, key) < 0)
        return -ENOMEM;
    buffer_append(&tally->names, name.data, name.size);
    buffer_append(&tally->entries, &entry, sizeof(entry));
    tally->totals.n_build_ids++;
    return 0;
}

static int tally_keep_build_id(PdTally *tally, uint32_t pid, uint16_t misc, const uint8_t *build_id,
                               uint8_t size, Bytes name) {
    Entry entry = {.pid = pid, .cpumode = misc & PD_MISC_CPUMODE_MASK};

    entry.size = MIN(size, (uint8_t)BUILD_ID_MAX);
    if (entry.size == 0 || name.size == 0)
        return 0;
    memcpy(entry.build_id, build_id, entry.size);
    return tally_keep(tally, entry, name);
}

/* The kernel's map is named with its reference symbol: "[kernel.kallsyms]_text". */
static Bytes tally_object_name(Bytes filename) {
    const uint8_t *end = filename.size > 0 && filename.data[0] == '['
                             ? memchr(filename.data, ']', filename.size)
                             : NULL;

    if (end)
        filename.size = (size_t)(end - filename.data) + 1;
    return filename;
}

static int tally_add_mapping(PdTally *tally, const PdRecord *record, const PdMmap *mmap) {
    uint16_t mode = record->misc & PD_MISC_CPUMODE_MASK;
    bool guest = mode == PD_MISC_GUEST_KERNEL || mode == PD_MISC_GUEST_USER;

    if (record->misc & PD_MISC_MMAP_BUILD_ID) {
        bare_mappings_identify(tally->bare, mmap->pid, mmap->start, mmap->filename);
        return mmap->data ? 0
                          : tally_keep_build_id(tally, guest ? mmap->pid : UINT32_MAX, mode,
                                                mmap->build_id, mmap->build_id_size,
                                                tally_object_name(mmap->filename));
    }
    return pd_filename_is_marked(mmap->filename)
               ? bare_mappings_add(tally->bare, mmap->pid, mmap->start,
                                   pd_filename_unmark(mmap->filename))
               : 0;
}

static int tally_parse_record(PdTally *tally, const PdEvent *event, const PdRecord *record) {
    uint16_t mode = record->misc & PD_MISC_CPUMODE_MASK;
    PdBody body;

    if (record->type == PD_RECORD_MMAP2 && pd_record_parse(record, event, &body) == 0)
        return tally_add_mapping(tally, record, &body.mmap);
    if (record->type == PD_RECORD_BUILD_ID && pd_record_parse(record, event, &body) == 0)
        return tally_keep_build_id(tally, body.build_id.pid, mode, body.build_id.build_id,
                                   body.build_id.size, body.build_id.filename);
    return 0;
}

static void tally_add_span(PdTallyTotals *t, uint64_t first, uint64_t last) {
    t->first_sample_time = t->has_times ? MIN(t->first_sample_time, first) : first;
    t->last_sample_time = t->has_times ? MAX(t->last_sample_time, last) : last;
    t->has_times = true;
}

void pd_tally_add_samples(PdTally *tally, uint64_t samples, uint64_t first, uint64_t last) {
    tally->totals.records += samples;
    tally->totals.samples += samples;
    if (samples > 0)
        tally_add_span(&tally->totals, first, last);
}

int pd_tally_add(PdTally *tally, const PdEvents *events, const PdRecord *record) {
    PdTallyTotals *t = &tally->totals;
    PdStamp stamp;

    t->records++;
    if (record->type == PD_RECORD_SAMPLE) {
        t->samples++;
        if (pd_events_stamp(events, record, &stamp) < 0 || !stamp.has_time)
            return 0;
        tally_add_span(t, stamp.time, stamp.time);
        return 0;
    }
    if (record->type == PD_RECORD_FINISHED_ROUND)
        t->round_time = t->last_sample_time;
    if (record->type != PD_RECORD_MMAP2 && record->type != PD_RECORD_BUILD_ID)
        return 0;
    if (pd_events_stamp(events, record, &stamp) < 0)
        return 0;
    return tally_parse_record(tally, stamp.event, record);
}

void pd_tally_encode_build_ids(const PdTally *tally, Buffer *out, bool swap) {
    for (size_t i = 0; i < tally->index.n; i++) {
        const Entry *e = tally_entry_at(tally, i);

        pd_encode_build_id(out, e->pid, e->cpumode, (Bytes){.data = e->build_id, .size = e->size},
                           tally_entry_name(tally, e), swap);
    }
}
