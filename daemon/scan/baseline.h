/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes copies of Baselines. */

#include "process/history/history.h"

/* A deep copy in one allocation; free() it. */
Baseline *baseline_copy(const Baseline *baseline);
/* The size of that allocation. */
size_t baseline_size(const Baseline *baseline);
