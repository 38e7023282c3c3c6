/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The hosts of option -H. */

#include "client/frame/option.h"

enum { HOSTS_MAX = 10000 };

typedef struct OptionHosts {
    char **names;
    size_t n;
    const char **arguments; /* arguments of the options, as pointers into argv */
    size_t n_arguments;
} OptionHosts;

/* Field: OptionHosts. [USER@]HOST, several separated by commas; a repeated option adds. */
int option_hosts(const Option *option, const char *argument, void *field);
void option_hosts_done(OptionHosts *hosts);
