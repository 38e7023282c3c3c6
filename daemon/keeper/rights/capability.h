/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The capabilities of the calling thread, as sets of bits: 1ULL << CAP_... */

#include <stdint.h>

uint64_t capabilities_permitted(void);
/* Gives up all others for good. The set must be permitted. */
int capabilities_limit(uint64_t set);
/* Nothing that this process executes has any capability. */
void capabilities_empty_bounding_set(void);
/* Puts all of them aside: the thread may do what its user may, until capabilities_use(). */
int capabilities_rest(void);
int capabilities_use(void);
