/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>

#include "load.h"

/*
 * A library that a program of the storm loads, works in, and drops again.
 */

uint64_t storm_plugin(uint64_t ns);

uint64_t load_now_ns(void);

LOAD_DEFINE_WORK(storm_plugin)

__attribute__((visibility("default"))) uint64_t storm_plugin(uint64_t ns) {
    return storm_plugin_work(ns) + 1;
}
