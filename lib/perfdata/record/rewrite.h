/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Changes records of one recording so that they fit among the events of another: ids are replaced
 * wherever a record may have one, tables of ids lose the rows of dropped events, samples and
 * trailers without an IDENTIFIER get one, and side-band that a tool wrote at the start (time 0, id
 * 0) gets a time and an id that are valid among other recordings too.
 */

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct PdRewriter PdRewriter;

/* Borrows the events of the source recording. */
int pd_rewriter_new(const PdEvents *events, PdRewriter **ret);
PdRewriter *pd_rewriter_free(PdRewriter *rewriter);
DEFINE_CLEANUP(PdRewriter *, pd_rewriter_free);

/* Replaces the id `from` by `to`; other ids and 0 stay unchanged. */
int pd_rewriter_map_id(PdRewriter *rewriter, uint64_t from, uint64_t to);
/* The id that `id` is replaced by. */
uint64_t pd_rewriter_id(const PdRewriter *rewriter, uint64_t id);
/* Rows and records about this id alone (ID_INDEX, EVENT_UPDATE, STAT) are dropped. */
int pd_rewriter_drop_id(PdRewriter *rewriter, uint64_t id);
/* Sets the id for records of the event that have no id, or an id of 0 in their trailer. */
int pd_rewriter_set_default_id(PdRewriter *rewriter, const PdEvent *event, uint64_t id);
/* Adds an IDENTIFIER to every sample and trailer of an event whose sample_type lacks it. */
void pd_rewriter_add_identifier(PdRewriter *rewriter);
/* Replaces the time 0 in trailers; samples stay unchanged. */
void pd_rewriter_set_zero_time(PdRewriter *rewriter, uint64_t time);

/*
 * Appends the rewritten record: 1, or 0 when the record is dropped. `stamp` comes from
 * pd_events_stamp(). -EBADMSG: the record is too short for its event, or its event is unknown but
 * needed; -EMSGSIZE: the record has no room for an IDENTIFIER. Nothing is appended then.
 */
int pd_rewriter_record(const PdRewriter *rewriter, const PdRecord *record, const PdStamp *stamp,
                       Buffer *out);

/* Adds IDENTIFIER to the sample_type of the attr and of its raw bytes (`raw` may be empty). */
void pd_attr_add_identifier(PdAttr *attr, uint8_t *raw, size_t raw_size, bool swap);
