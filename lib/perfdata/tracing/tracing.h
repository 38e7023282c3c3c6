/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The TRACING_DATA blob, as far as it names tracepoints and the fields of their raw data. The
 * caller keeps the blob; PdTracing borrows nothing from it.
 */

#include "util/buffer.h"
#include "util/bytes.h"
#include "util/fields.h"

typedef struct PdTracing PdTracing;

/* -EBADMSG if it is no tracing data; invalid formats are skipped one by one. */
int pd_tracing_new(Bytes blob, PdTracing **ret);
PdTracing *pd_tracing_free(PdTracing *tracing);
DEFINE_CLEANUP(PdTracing *, pd_tracing_free);

/* "sched:sched_switch" for a tracepoint's config; NULL if it is unknown. */
const char *pd_tracing_name(const PdTracing *tracing, uint64_t id);
/* Adds the fields of a sample's raw data as members; nothing if the id is unknown. */
void pd_tracing_describe(const PdTracing *tracing, uint64_t id, Bytes raw, bool swap,
                         Fields *fields);

/* Appends a blob with the tracepoints of both; everything else is that of the first. -EEXIST: they
 * disagree about a tracepoint or the host; -EBADMSG: one is cut off; -E2BIG. */
int pd_tracing_merge(Bytes first, Bytes second, Buffer *out);
