/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-destination.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * One destination of Type=s3 and nothing else, with windows as short as a test wants: STATE SOCKET
 * SESSION URL SECRET-FILE CONTENT SECONDS. Ends at SIGTERM.
 */

static int tool_on_stop(void *userdata) {
    loop_stop(userdata);
    return 0;
}

/* With the fields, for the test. */
static int tool_log(LogLevel level _unused_, int error _unused_, const char *message,
                    const LogField *fields, size_t n) {
    flockfile(stderr);
    fputs(message, stderr);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, " %s=%s", fields[i].name, fields[i].value);
    fputc('\n', stderr);
    funlockfile(stderr);
    return 0;
}

static int tool_run(const char *state_folder, const GatewayConfig *gateway,
                    const SendConfig *config) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    _cleanup_(transport_freep) Transport *transport = NULL;
    _cleanup_(s3_destination_freep) S3Destination *destination = NULL;
    const char *problem = NULL;
    int r = s3_destination_check(config, &problem);

    if (r < 0)
        return log_error(r, "The destination cannot work: %s", problem);
    r = loop_new(&loop);
    if (r == 0)
        r = loop_add_signal(loop, SIGTERM, tool_on_stop, loop, NULL);
    if (r == 0)
        r = transport_new(loop, &transport);
    if (r == 0)
        r = s3_destination_new(&(S3DestinationOptions){.config = config,
                                                       .gateway = gateway,
                                                       .state_folder = state_folder,
                                                       .loop = loop,
                                                       .transport = transport},
                               &destination);
    return r < 0 ? log_error(r, "Failed to set up the destination: %m") : loop_run(loop);
}

int main(int argc, char **argv) {
    static GatewayConfig gateway;
    SendConfig *config = &gateway.sends[0];

    if (argc != 8)
        return 2;
    log_set_backend(tool_log);
    (void)snprintf(gateway.socket, sizeof(gateway.socket), "%s", argv[2]);
    (void)snprintf(gateway.session, sizeof(gateway.session), "%s", argv[3]);
    (void)snprintf(gateway.host, sizeof(gateway.host), "web-1");
    (void)snprintf(config->name, sizeof(config->name), "archive");
    (void)snprintf(config->type, sizeof(config->type), "s3");
    (void)snprintf(config->url, sizeof(config->url), "%s", argv[4]);
    (void)snprintf(config->password_file, sizeof(config->password_file), "%s", argv[5]);
    (void)snprintf(config->content, sizeof(config->content), "%s", argv[6]);
    (void)snprintf(config->region, sizeof(config->region), "eu-test-1");
    config->object_interval_ns = strtoull(argv[7], NULL, 10) * NS_PER_SECOND;
    gateway.interval_ns = NS_PER_SECOND;
    config->timeout_ns = 2 * NS_PER_SECOND;
    config->share_percent = 100;
    return tool_run(argv[1], &gateway, config) < 0;
}
