/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The capabilities of the calling thread, as sets of bits: 1ULL << CAP_... */

#include <stdint.h>

uint64_t capabilities_permitted(void);
/* Drops all others for good. The set must be permitted. */
int capabilities_limit(uint64_t set);
/* Programs that this process executes get no capabilities. */
void capabilities_empty_bounding_set(void);
/* Disables all of them: the thread may do what its user may, until capabilities_use(). */
int capabilities_rest(void);
int capabilities_use(void);
