/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The TRACING_DATA blob, as far as it names tracepoints and the fields of their raw data. The blob
 * itself is kept whole by whoever has it; this borrows nothing from it.
 */

#include "util/buffer.h"
#include "util/bytes.h"
#include "util/fields.h"

typedef struct PdTracing PdTracing;

/* -EBADMSG when it is no tracing data; formats that make no sense are left out one by one. */
int pd_tracing_new(Bytes blob, PdTracing **ret);
PdTracing *pd_tracing_free(PdTracing *tracing);
DEFINE_CLEANUP(PdTracing *, pd_tracing_free);

/* "sched:sched_switch" for a tracepoint's config; NULL when it is not there. */
const char *pd_tracing_name(const PdTracing *tracing, uint64_t id);
/* The fields of a sample's raw data as members; nothing when the id is not known. */
void pd_tracing_describe(const PdTracing *tracing, uint64_t id, Bytes raw, bool swap,
                         Fields *fields);

/* Appends a blob with the tracepoints of both; all else is that of the first. -EEXIST: they say
 * different things of one tracepoint or of the host; -EBADMSG: one is cut off; -E2BIG. */
int pd_tracing_merge(Bytes first, Bytes second, Buffer *out);
