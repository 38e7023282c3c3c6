/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/dropped.h"

#include "util/array.h"
#include "util/macro.h"

/*
 * Samples of several CPUs share a batch because they go to one file. When a batch is refused, each
 * sample counts for its own CPU, so that the manifest shows which CPU has a hole.
 */

void dropped_done(Dropped *dropped) {
    free(dropped->cpus);
    *dropped = (Dropped){};
}

/* Out of memory: add the count to a CPU that has an entry already. */
void dropped_add(Dropped *dropped, unsigned cpu, uint64_t samples) {
    DroppedCpu *found = NULL;

    if (samples == 0)
        return;
    for (size_t i = 0; !found && i < dropped->n; i++)
        if (dropped->cpus[i].cpu == cpu)
            found = &dropped->cpus[i];
    if (!found) {
        found = array_grow(&dropped->cpus, &dropped->n);
        if (found)
            *found = (DroppedCpu){.cpu = cpu};
        else if (dropped->n > 0)
            found = &dropped->cpus[0];
    }
    if (found)
        found->samples += samples;
}

void dropped_add_batch(Dropped *dropped, const PdEvents *events, const StoreBatch *batch) {
    Bytes records = store_batch_bytes(batch);
    uint64_t left = batch->samples;
    PdRecord record;
    PdStamp stamp;

    while (left > 0 && pd_records_next(&records, &record)) {
        if (record.type != PD_RECORD_SAMPLE || pd_events_stamp(events, &record, &stamp) < 0 ||
            !stamp.event)
            continue;
        dropped_add(dropped, stamp.has_cpu ? stamp.cpu : batch->cpu, 1);
        left--;
    }
    dropped_add(dropped, batch->cpu, left);
}
