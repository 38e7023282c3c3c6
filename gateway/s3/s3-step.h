/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a destination does next. */

#include "s3/s3-outcome.h"

/* Begins what is next, unless something is under way; the callback of the timer. */
int s3_run_step(void *userdata);
bool s3_run_sends_snapshots(const SendConfig *config);
/* Whether it is a folder instead of a bucket. */
bool s3_run_is_folder(const SendConfig *config);
