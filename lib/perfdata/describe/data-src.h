/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside lib/perfdata: describes PERF_SAMPLE_DATA_SRC as an object `data_src`. */

#include "util/fields.h"

void data_src_describe(uint64_t v, Fields *f);
