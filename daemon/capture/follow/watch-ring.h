/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Watches the ring if the sampler has a loop. */
int watch_ring(CpuRing *ring);
