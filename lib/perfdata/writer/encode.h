/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a recording says about itself besides its records, as bytes: attrs, and the bodies of the
 * features that only the one who records can know.
 */

#include "perfdata/event/event.h"
#include "perfdata/event/format.h"
#include "perfdata/feature/coverage.h"
#include "util/buffer.h"
#include "util/bytes.h"

/* The room that an event's attr wants: its own size, but no zeros beyond what old readers take. */
uint32_t pd_encode_attr_size(const PdEvent *event);
/* The largest of all; 64 when there are none. */
uint32_t pd_encode_attrs_size(const PdEvents *events);
/* Exactly `size` bytes (a multiple of 8, not below pd_encode_attr_size()): the event's own bytes
 * where it has them, attr.size being set to `size`. */
void pd_encode_attr(Buffer *out, const PdEvent *event, uint32_t size, bool swap);

/* Body of the EVENT_DESC feature: every event with its attr, ids and name. */
void pd_encode_event_desc(Buffer *out, const PdEvents *events, bool swap);
/* Body of the GROUP_DESC feature; nothing where no event leads another. */
void pd_encode_group_desc(Buffer *out, const PdEvents *events, bool swap);
/* Body of the SAMPLE_TIME feature. */
void pd_encode_sample_time(Buffer *out, uint64_t first, uint64_t last, bool swap);
/* Body of the PROFD_COVERAGE feature, by CLOCK_REALTIME; a negative errno. */
int pd_encode_coverage(Buffer *out, const PdCoverage *coverage, bool swap);
/* Body of the COMPRESSED feature, for frames of zstd that hold at most frame_raw_max bytes. */
void pd_encode_compressed(Buffer *out, uint32_t level, uint32_t ratio, uint32_t frame_raw_max,
                          bool swap);
/* An entry of the BUILD_ID feature; with its type a BUILD_ID record. pid -1 is the host itself. */
void pd_encode_build_id(Buffer *out, uint32_t pid, uint16_t cpumode, Bytes build_id, Bytes filename,
                        bool swap);
