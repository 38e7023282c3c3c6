/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdio.h>

#include "config/config-private.h"

/*
 * Functions for every step of loading: they report problems, and note where each key was set.
 */

void config_report(ConfigLoad *load, const char *path, unsigned line, const char *format, ...) {
    char problem[CONFIG_PROBLEM_MAX];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(problem, sizeof(problem), format, ap);
    va_end(ap);
    load->problems++;
    if (load->on_problem)
        load->on_problem(load->userdata, path, line, problem);
}

size_t config_origin_index(const ConfigKey *key, ptrdiff_t session) {
    size_t n;
    const ConfigKey *keys = config_keys(&n);

    return (size_t)(session + 1) * n + (size_t)(key - keys);
}

ConfigOrigin *config_load_origin(const ConfigLoad *load, const ConfigKey *key, ptrdiff_t session) {
    return &load->origins[config_origin_index(key, session)];
}
