/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export-output.h"

/* The way to the sink. After a failure nothing more is handed over, so a format checks only once in
 * a while. */

void export_output_done(ExportOutput *output) {
    buffer_done(&output->buffer);
}

int export_output_flush(ExportOutput *output) {
    if (output->error == 0)
        output->error = buffer_error(&output->buffer);
    if (output->error == 0 && output->buffer.size > 0) {
        int r = output->sink(output->buffer.data, output->buffer.size, output->arg);

        output->error = MIN(r, 0);
    }
    buffer_clear(&output->buffer);
    return output->error;
}
