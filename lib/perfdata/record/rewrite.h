/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records of one recording, changed so that they fit among the events of another one: ids are
 * replaced wherever a record may hold one, tables of ids lose the rows of events that are left
 * out, samples and trailers without an IDENTIFIER get one, and side-band that a tool made up at
 * the start (time 0, id 0) gets a time and an id that hold among other recordings too.
 */

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct PdRewriter PdRewriter;

/* Borrows the events of the recording that the records come from. */
int pd_rewriter_new(const PdEvents *events, PdRewriter **ret);
PdRewriter *pd_rewriter_free(PdRewriter *rewriter);
DEFINE_CLEANUP(PdRewriter *, pd_rewriter_free);

/* Writes `to` where a record holds `from`; an id without a row stays as it is, and so does 0. */
int pd_rewriter_map_id(PdRewriter *rewriter, uint64_t from, uint64_t to);
/* What `id` is written as. */
uint64_t pd_rewriter_id(const PdRewriter *rewriter, uint64_t id);
/* Rows and records that are about this id alone (ID_INDEX, EVENT_UPDATE, STAT) are left out. */
int pd_rewriter_drop_id(PdRewriter *rewriter, uint64_t id);
/* What stands where the event's records have no id, or an id of 0 in their trailer. */
int pd_rewriter_set_default_id(PdRewriter *rewriter, const PdEvent *event, uint64_t id);
/* Every sample and trailer of an event whose sample_type lacks IDENTIFIER gets one. */
void pd_rewriter_add_identifier(PdRewriter *rewriter);
/* For trailers that say 0; samples are left alone. */
void pd_rewriter_set_zero_time(PdRewriter *rewriter, uint64_t time);

/*
 * Appends the record as it is to be written: 1, or 0 when nothing of it is left. `stamp` is what
 * pd_events_stamp() found. -EBADMSG: the record does not hold what its event announces, or an
 * event is needed and nobody knows it; -EMSGSIZE: an IDENTIFIER does not fit any more. Nothing is
 * appended then.
 */
int pd_rewriter_record(const PdRewriter *rewriter, const PdRecord *record, const PdStamp *stamp,
                       Buffer *out);

/* The attr with IDENTIFIER in its sample_type, its raw bytes likewise (`raw` may be empty). */
void pd_attr_add_identifier(PdAttr *attr, uint8_t *raw, size_t raw_size, bool swap);
