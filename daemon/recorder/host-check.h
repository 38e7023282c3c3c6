/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A configuration held against this host: whether what it says is recorded here. */

#include "capture/sampler/check.h"

/* Reports what would not be recorded as problems, and logs what cannot be checked. `options` is
 * borrowed, without its report. The number of problems, or a negative errno. */
int host_check_session(const CheckOptions *options, const Config *config,
                       const SessionConfig *session, ConfigProblem on_problem, void *userdata);
/* All sessions, for a program that does not record. Problems are logged. */
int host_check_config(const Config *config);
