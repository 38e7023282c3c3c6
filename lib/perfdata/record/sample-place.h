/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Single fields of a SAMPLE, found without parsing the others, for a caller who looks at every
 * sample. */

#include "perfdata/event/event.h"
#include "perfdata/record/sample.h"

/* False: samples of the event have no address, or this one is too short. */
bool pd_sample_ip(const PdRecord *record, const PdEvent *event, uint64_t *ret);
/* The call chain, borrowed. False: samples of the event have none, or its place is not the same in
 * all of them, or this one is too short. */
bool pd_sample_chain(const PdRecord *record, const PdEvent *event, PdU64s *ret);
