/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "store/manifest/manifest.h"

/* Makes a manifest from the data alone: everything except boot, coverage, and what was throttled,
 * inferred or dropped. */
int manifest_rebuild(int folder, const SegmentName *name, const char *session, Manifest **ret);
