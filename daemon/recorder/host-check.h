/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks a configuration against this host: whether its events can be recorded here. */

#include "capture/plan/check.h"

/* Reports each event that would not be recorded as a problem, and logs what cannot be checked.
 * `options` is borrowed; its report callback is replaced. Returns the number of problems or a
 * negative errno. */
int host_check_session(const CheckOptions *options, const Config *config,
                       const SessionConfig *session, ConfigProblem on_problem, void *userdata);
/* Checks all sessions, for `profd --check-config`, which does not record. Problems are logged. */
int host_check_config(const Config *config);
