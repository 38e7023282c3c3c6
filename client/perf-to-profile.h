/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* profctl under the name by which pprof calls a converter of perf.data. */

#include <stdbool.h>

/* Whether this is the name of the program, with or without a path. */
bool perf_to_profile_is(const char *program);
/* Runs `perf_to_profile -i FILE -o OUT [-f]` as `profctl pprof`. Returns an ExitStatus. */
int perf_to_profile_run(int argc, char **argv);
