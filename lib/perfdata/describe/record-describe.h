/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "perfdata/record/record.h"
#include "perfdata/tracing/tracing.h"
#include "util/fields.h"

/*
 * Adds every field of the record, including header and stamp, to an open object of `fields`.
 * `tracing` (may be NULL) provides the fields of a tracepoint's raw data. A record that cannot be
 * parsed is shown as bytes, with the reason.
 */
void pd_record_describe(const PdRecord *record, const PdStamp *stamp, const PdTracing *tracing,
                        Fields *fields);
