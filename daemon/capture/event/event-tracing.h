/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* TRACING_DATA: the tracefs files with which a reader decodes the raw data of tracepoints. */

#include "capture/event/event-spec.h"
#include "util/buffer.h"

/* Appends the blob for the tracepoints of the list, or nothing if it has none. -ENOENT: a
 * tracepoint is gone; -EFBIG: a file is larger than any that the kernel makes. */
int event_tracing(const EventList *list, const EventHost *host, Buffer *out);
