/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encodes what a recording says about itself besides its records: attrs, and the bodies of the
 * features that only the recorder knows.
 */

#include "perfdata/event/event.h"
#include "perfdata/event/format.h"
#include "perfdata/feature/coverage.h"
#include "util/buffer.h"
#include "util/bytes.h"

/* The size that an event's attr needs: its own size, without zeros beyond what old readers
 * accept. */
uint32_t pd_encode_attr_size(const PdEvent *event);
/* The largest of all; 64 if there are none. */
uint32_t pd_encode_attrs_size(const PdEvents *events);
/* Exactly `size` bytes (a multiple of 8, not below pd_encode_attr_size()): the event's own bytes if
 * it has them, with attr.size set to `size`. */
void pd_encode_attr(Buffer *out, const PdEvent *event, uint32_t size, bool swap);

/* Body of the EVENT_DESC feature: every event with its attr, ids and name. */
void pd_encode_event_desc(Buffer *out, const PdEvents *events, bool swap);
/* Body of the GROUP_DESC feature; empty if there are no groups. */
void pd_encode_group_desc(Buffer *out, const PdEvents *events, bool swap);
/* Body of the SAMPLE_TIME feature. */
void pd_encode_sample_time(Buffer *out, uint64_t first, uint64_t last, bool swap);
/* Body of the PROFD_COVERAGE feature, in CLOCK_REALTIME; a negative errno. */
int pd_encode_coverage(Buffer *out, const PdCoverage *coverage, bool swap);
/* Body of the COMPRESSED feature, for zstd frames with at most frame_raw_max raw bytes. */
void pd_encode_compressed(Buffer *out, uint32_t level, uint32_t ratio, uint32_t frame_raw_max,
                          bool swap);
/* An entry of the BUILD_ID feature; with its type set, a BUILD_ID record. pid -1 is the host
 * itself. */
void pd_encode_build_id(Buffer *out, uint32_t pid, uint16_t cpumode, Bytes build_id, Bytes filename,
                        bool swap);
