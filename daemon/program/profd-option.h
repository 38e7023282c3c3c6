/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* profd's command line. */

#include <stdbool.h>

typedef struct Options {
    const char *store, *runtime;
    const char *config;          /* NULL: the default one */
    int recorder;                /* the socket to the keeper; -1: this is the keeper */
    bool has_store, has_runtime; /* they were named */
    bool check_config, print_config_keys, print_events, print_options, help, version;
} Options;

/* -EINVAL, with the reason on stderr. The log level is set at once. */
int option_parse(Options *ret, int argc, char **argv);
/* Prints the text of --help. */
void option_print_help(void);
/* The same for what makes the completions of the shells. */
void option_print_table(void);
