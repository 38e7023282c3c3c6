/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Samples that the kernel got wrong: they are left out, since no perf reads a recording with them.
 */

#include "perfdata/event/event.h"
#include "util/buffer.h"

/* Some of the events are of a kind that kernels confuse. */
bool broken_samples_are_possible(const PdEvents *events);
/* Appends whole records but for samples that were not written for the event whose id they have;
 * their number. Records are in host order. */
size_t broken_samples_remove(const PdEvents *events, Bytes records, Buffer *out);
