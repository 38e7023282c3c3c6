/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "store/manifest/manifest.h"

/* From the data itself: all but boot, coverage, and what was throttled, inferred or dropped. */
int manifest_rebuild(int folder, const SegmentName *name, const char *session, Manifest **ret);
