/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Metrics as a collector of Prometheus reads them. */

#include <jansson.h>

#include "util/buffer.h"

/* Appends the metrics of a reply to GetMetrics(), an array, in the text format 0.0.4; what is
 * no metric is left out. Strings are not escaped for a terminal. */
void metric_text_put(Buffer *out, const json_t *metrics);
