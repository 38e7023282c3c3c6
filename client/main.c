/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/perf-to-profile.h"
#include "client/profctl.h"

/* main() of profctl, in a file of its own so that tests can link everything else. */

int main(int argc, char **argv) {
    return perf_to_profile_is(argv[0]) ? perf_to_profile_run(argc, argv) : client_run(argc, argv);
}
