/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Copies of Baselines. */

#include "process/history/history.h"

/* A deep copy in one piece of memory; free() it. */
Baseline *baseline_copy(const Baseline *baseline);
/* The size of that memory. */
size_t baseline_size(const Baseline *baseline);
