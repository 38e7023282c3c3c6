/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-read.h"

#include <stdio.h>
#include <string.h>

#include "s3/s3-destination.h"
#include "util/log.h"

/*
 * The configuration with the options of the command line: problems go to the log, each with its
 * file and line, and names of files in the runtime folder become paths.
 */

static void gateway_read_on_problem(void *userdata _unused_, const char *path, unsigned line,
                                    const char *problem) {
    char number[16];

    snprintf(number, sizeof(number), "%u", line);
    log_struct(LOG_LEVEL_WARNING, 0,
               LOG_FIELDS({"PROFD_EVENT", "gateway-config-problem"}, {"PROFD_FILE", path},
                          {"PROFD_LINE", number}),
               "%s:%u: %s", path, line, problem);
}

/* A name without a slash is that of a socket in the runtime folder. Returns the number of problems.
 */
static int gateway_read_place_socket(const GatewayOptions *options, GatewayConfig *config) {
    char path[sizeof(config->listen_socket)] = {};
    int n;

    if (!*config->listen_socket || *config->listen_socket == '/')
        return 0;
    n = snprintf(path, sizeof(path), "%s/%s", options->runtime, config->listen_socket);
    if (n >= (int)sizeof(path)) {
        gateway_read_on_problem(
            NULL, options->config ?: "gateway.conf", 0,
            "Socket= of [Listen] is too long with the path of the runtime folder");
        return 1;
    }
    memcpy(config->listen_socket, path, sizeof(path));
    return 0;
}

int gateway_read_config(const GatewayOptions *options, GatewayConfig **ret) {
    int r = gateway_config_load("", options->config, s3_destination_check, gateway_read_on_problem,
                                NULL, ret);

    return r < 0 ? log_error(r, "Failed to read configuration '%s': %m",
                             options->config ?: "gateway.conf")
                 : r + gateway_read_place_socket(options, *ret);
}
