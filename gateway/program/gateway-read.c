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

/* What the keys of an object store say together. Such a destination is refused later. */
static int gateway_read_check_stores(const GatewayOptions *options, const GatewayConfig *config) {
    int problems = 0;

    for (size_t i = 0; i < config->n_sends; i++) {
        const char *problem = NULL;
        char sentence[512];

        if (strcmp(config->sends[i].type, "s3") != 0 ||
            s3_destination_check(&config->sends[i], &problem) == 0)
            continue;
        (void)snprintf(sentence, sizeof(sentence), "[Send %s]: %s", config->sends[i].name,
                       problem ?: "its keys do not go together");
        gateway_read_on_problem(NULL, options->config ?: "gateway.conf", 0, sentence);
        problems++;
    }
    return problems;
}

int gateway_read_config(const GatewayOptions *options, GatewayConfig **ret) {
    int r = gateway_config_load("", options->config, gateway_read_on_problem, NULL, ret);

    return r < 0 ? log_error(r, "Failed to read configuration '%s': %m",
                             options->config ?: "gateway.conf")
                 : r + gateway_read_place_socket(options, *ret) +
                       gateway_read_check_stores(options, *ret);
}
