/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdio.h>

#include "config/gateway-config-private.h"

/*
 * Complaints about keys that were read before: each is at the line of its key, or at the heading of
 * its section where nobody wrote that key.
 */

bool gateway_load_has(const GatewayOrigins *origins, const char *section, const char *key) {
    ConfigTable table = gateway_config_table();

    return origins->keys[config_table_find(table, section, key) - table.keys].path;
}

void gateway_load_report(GatewayLoad *load, const GatewayOrigins *origins, const char *section,
                         const char *key, const char *format, ...) {
    ConfigTable table = gateway_config_table();
    const GatewayOrigin *at = &origins->heading;
    char problem[512];
    va_list ap;

    if (gateway_load_has(origins, section, key))
        at = &origins->keys[config_table_find(table, section, key) - table.keys];
    va_start(ap, format);
    (void)vsnprintf(problem, sizeof(problem), format, ap);
    va_end(ap);
    config_report(&load->files, at->path, at->line, "%s", problem);
}
