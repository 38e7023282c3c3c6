/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

enum { SIDE_BAND_RING_BYTES = 512 * 1024 };

/* In the ring of side-band. A tag stores the number, so it never changes; 2 was the event of data
 * mappings before it had a ring of its own. */
enum { SIDE_BAND_EVENT = 0, NAMESPACES_EVENT = 1 };

/* Finds the side-band attr that the kernel accepts, with less on old kernels. Returns 1 if it
 * records only processes of the keeper's user. */
int side_band_settle(Sampler *sampler, unsigned cpu);
PdAttr side_band_namespaces_attr(const Sampler *sampler);
PdAttr side_band_data_attr(const Sampler *sampler);
