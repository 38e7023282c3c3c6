/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Removes samples that the kernel wrote wrongly, because no perf reads a recording with them. */

#include "perfdata/event/event.h"
#include "util/buffer.h"

/* Whether some of the events are of a kind that kernels confuse. */
bool broken_samples_are_possible(const PdEvents *events);
/* Appends all records except samples that were written for another event than their id says;
 * returns the number of those. Records are in host order. */
size_t broken_samples_remove(const PdEvents *events, Bytes records, Buffer *out);
