/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of profd. */

#include <stdbool.h>

#include "config/program-option.h"

typedef struct Options {
    const char *store, *runtime; /* NULL: not given */
    const char *config;          /* NULL: the default path */
    int recorder;                /* the socket to the keeper; -1: this is the keeper */
    bool check_config, print_config_keys, print_events, print_options, help, version;
} Options;

extern const ProgramOptions profd_options;
