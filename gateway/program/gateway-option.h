/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses the command line of profd-gateway. */

#include <stdbool.h>

typedef struct GatewayOptions {
    const char *config; /* NULL: the default path */
    const char *state, *runtime;
    const char *test; /* the destination to test; NULL: none */
    bool check_config, print_config_keys, print_options, help, version;
} GatewayOptions;

/* -EINVAL, with the reason on stderr. Sets the log level at once. */
int gateway_option_parse(GatewayOptions *ret, int argc, char **argv);
/* Prints the text of --help. */
void gateway_option_print_help(void);
/* Prints the options for the program that makes the shell completions. */
void gateway_option_print_table(void);
