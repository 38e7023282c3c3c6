/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was not recorded, ring by ring. */

#include "capture/ring/ring-set.h"

typedef struct Loss {
    SamplerSession *session; /* NULL: side-band, or data mappings */
    bool is_data;
    uint64_t id;
    unsigned cpu;
    uint64_t lost; /* records */
} Loss;

typedef int (*SamplerLoss)(void *userdata, const Loss *loss);

/* Counts the records about throttling and loss. */
void loss_notice(CpuRing *ring, Bytes records);
/* Reads a counter's losses before it is closed. */
/* Before space of the ring is given back: a ring that always had room has lost nothing. */
void loss_note_space(CpuRing *ring);
void loss_read(CpuRing *ring, Counter *counter);
/* Counts what was lost since the last call, and calls fn for each counter that lost records. */
int loss_report(const RingSet *set, SamplerLoss fn, void *userdata);
/* Returns the `lost` of the event with this id from what read() returned; -EBADMSG if it is
 * missing. */
int loss_parse(uint64_t read_format, Bytes bytes, uint64_t id, uint64_t *ret);
