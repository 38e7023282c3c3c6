/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses the command line of profd. */

#include <stdbool.h>

typedef struct Options {
    const char *store, *runtime;
    const char *config;          /* NULL: the default path */
    int recorder;                /* the socket to the keeper; -1: this is the keeper */
    bool has_store, has_runtime; /* the options were given */
    bool check_config, print_config_keys, print_events, print_options, help, version;
} Options;

/* -EINVAL, with the reason on stderr. Sets the log level at once. */
int option_parse(Options *ret, int argc, char **argv);
/* Prints the text of --help. */
void option_print_help(void);
/* Prints the options for the program that makes the shell completions. */
void option_print_table(void);
