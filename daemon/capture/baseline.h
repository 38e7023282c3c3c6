/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What ran before the recording began, as the records that the kernel would have written: kernel
 * and module maps, and of each process its comm, threads and executable mappings.
 */

#include "capture/capture.h"
#include "perfdata/emit.h"

/* Hands Batches of side-band to the sink, all stamped as the trailer says. A process that ends
 * while it is read is left out; `root` is "" but in tests. */
int baseline_kernel(const char *root, const PdTrailer *trailer, CaptureSink sink, void *userdata);
int baseline_processes(const char *root, const PdTrailer *trailer, CaptureSink sink,
                       void *userdata);
