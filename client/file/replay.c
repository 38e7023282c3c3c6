/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/replay.h"

#include <errno.h>

#include "perfdata/feature/environment.h"
#include "perfdata/order/order.h"

/*
 * Sorting by time copies the records, so only the part of a sample that is needed to resolve it is
 * kept: a small record of our own, 24 bytes instead of maybe kilobytes of stack. Side-band is rare
 * and kept completely. A record without a time takes effect in file order, as in perf.
 */

enum { KEPT_SIZE = PD_RECORD_HEADER_SIZE + 16 };

struct Replay {
    PdReader *reader;
    ReplaySink sink;
    void *arg;
    ProcessTable *table;
    PdSorter *sorter;
    PdRounds rounds;
    uint64_t last; /* the latest time passed on */
};

/* The kernel's name may be in the file, if perf found a file for it. */
static int replay_learn_kernel_name(Replay *replay) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, replay->reader, PD_FEATURE_BUILD_ID);
    for (size_t i = 0; r >= 0 && i < env->n_build_ids; i++) {
        const PdBuildIdEntry *entry = &env->build_ids[i];

        process_table_feed_build_id(
            replay->table, entry->misc,
            (Bytes){.data = (const uint8_t *)entry->filename, .size = strlen(entry->filename)});
    }
    return r;
}

int replay_new(PdReader *reader, const ProcessLimits *limits, ReplaySink sink, void *arg,
               Replay **ret) {
    _cleanup_(replay_freep) Replay *replay = calloc(1, sizeof(*replay));
    int r;

    if (!replay)
        return -ENOMEM;
    replay->reader = reader;
    replay->sink = sink;
    replay->arg = arg;
    r = process_table_new(limits, &replay->table);
    if (r >= 0)
        r = pd_sorter_new(NULL, &replay->sorter);
    if (r >= 0 && pd_reader_header(reader)->mode != PD_MODE_PIPE)
        r = replay_learn_kernel_name(replay);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(replay);
    return 0;
}

Replay *replay_free(Replay *replay) {
    if (!replay)
        return NULL;
    pd_sorter_free(replay->sorter);
    process_table_free(replay->table);
    free(replay);
    return NULL;
}

static int replay_show(Replay *replay, const PdRecord *record) {
    if (record->type != PD_RECORD_SAMPLE) {
        /* An invalid record is reported elsewhere and changes nothing here. */
        (void)process_table_feed(replay->table, record, NULL);
        return 0;
    }
    ReplaySample sample = {
        .pid = load_u32(record->data + PD_RECORD_HEADER_SIZE, false),
        .tid = load_u32(record->data + PD_RECORD_HEADER_SIZE + 4, false),
        .ip = load_u64(record->data + PD_RECORD_HEADER_SIZE + 8, false),
        .cpumode = record->misc & PD_MISC_CPUMODE_MASK,
    };
    return replay->sink(replay->table, &sample, replay->arg);
}

static int replay_show_released(Replay *replay, uint64_t limit) {
    PdRecord record;
    int r, q;

    pd_sorter_release(replay->sorter, limit);
    while ((r = pd_sorter_next(replay->sorter, &record, &replay->last)) > 0) {
        q = replay_show(replay, &record);
        if (q < 0)
            return q;
    }
    return r;
}

/* Writes the part of a sample that is needed to resolve it to `bytes`. */
static PdRecord replay_keep_sample(const PdRecord *record, const PdStamp *stamp,
                                   uint8_t bytes[KEPT_SIZE]) {
    uint64_t type = stamp->event->attr.sample_type, ip = 0;
    size_t at = PD_RECORD_HEADER_SIZE + (type & PD_SAMPLE_IDENTIFIER ? 8 : 0);
    PdRecord kept = {.type = record->type, .misc = record->misc, .size = KEPT_SIZE, .data = bytes};

    if ((type & PD_SAMPLE_IP) && at + 8 <= record->size)
        ip = load_u64(record->data + at, record->swap);
    memset(bytes, 0, PD_RECORD_HEADER_SIZE);
    store_u32(bytes + PD_RECORD_HEADER_SIZE, stamp->has_tid ? stamp->pid : UINT32_MAX, false);
    store_u32(bytes + PD_RECORD_HEADER_SIZE + 4, stamp->has_tid ? stamp->tid : UINT32_MAX, false);
    store_u64(bytes + PD_RECORD_HEADER_SIZE + 8, ip, false);
    return kept;
}

static bool replay_matters(const PdRecord *record) {
    return record->type == PD_RECORD_SAMPLE || process_table_takes(record);
}

int replay_add(Replay *replay, const PdRecord *record, const PdStamp *stamp) {
    uint8_t bytes[KEPT_SIZE];
    PdRecord kept = *record;

    if (record->type == PD_RECORD_FINISHED_ROUND)
        return pd_reader_header(replay->reader)->mode == PD_MODE_DIRECTORY
                   ? 0
                   : replay_show_released(replay, pd_rounds_end(&replay->rounds));
    if (!replay_matters(record) || (record->type == PD_RECORD_SAMPLE && !stamp->event))
        return 0;
    if (record->type == PD_RECORD_SAMPLE)
        kept = replay_keep_sample(record, stamp, bytes);
    if (!stamp->has_time || stamp->time == 0 || stamp->time == UINT64_MAX ||
        !pd_order_applies(replay->reader))
        return replay_show(replay, &kept);
    pd_rounds_saw(&replay->rounds, stamp->time);
    return pd_sorter_add(replay->sorter, &kept, stamp->time);
}

int replay_finish(Replay *replay) {
    return replay_show_released(replay, UINT64_MAX);
}

ProcessTable *replay_table(Replay *replay) {
    return replay->table;
}
