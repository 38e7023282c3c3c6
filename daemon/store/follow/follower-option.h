/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a client wants to follow. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

typedef struct FollowerOptions {
    char session[CONFIG_NAME_MAX];
    uint64_t since_ns, until_ns; /* CLOCK_REALTIME; until 0: no end */
    uint64_t position_ns;        /* CLOCK_MONOTONIC of this boot, instead of since; 0: none */
    uint64_t every_ns;           /* how often it wants what is new */
    bool privileged;             /* may have sensitive data */
} FollowerOptions;
