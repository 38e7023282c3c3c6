/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of profd-gateway. */

#include <stdbool.h>

#include "config/program-option.h"

typedef struct GatewayOptions {
    const char *config; /* NULL: the default path */
    const char *state, *runtime;
    const char *test; /* the destination to test; NULL: none */
    bool check_config, print_config_keys, print_options, help, version;
} GatewayOptions;

extern const ProgramOptions gateway_options;
