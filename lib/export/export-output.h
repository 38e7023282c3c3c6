/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a format writes, gathered to blocks for the sink. */

#include "export/export.h"
#include "util/buffer.h"

enum { EXPORT_BLOCK = 64 * 1024 };

typedef struct ExportOutput {
    Buffer buffer;
    ExportSink sink;
    void *arg;
    int error; /* the first failure, negative; sticky */
} ExportOutput;

void export_output_done(ExportOutput *output);

/* Hands everything to the sink. Returns 0 or the sticky negative errno. */
int export_output_flush(ExportOutput *output);

/* Does so if a block is full; a format calls it after each piece. */
static inline int export_output_breathe(ExportOutput *output) {
    return output->buffer.size < EXPORT_BLOCK && !output->buffer.error
               ? output->error
               : export_output_flush(output);
}
