/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/gateway/gateway-view.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/near.h"

/*
 * `profctl gateway`: the state of the gateway from the file that it writes every few seconds, so
 * that no connection is needed, and a test of a destination, which profd-gateway itself makes. A
 * file that is old, or of a process that is gone, is shown as such and sets the exit status.
 */

#define GATEWAY_PROGRAM "profd-gateway"

enum { GATEWAY_STATUS_MAX = 1 << 20, GATEWAY_INTERVALS_MAX = 3 };

#define GATEWAY_SLACK_US (5 * US_PER_SECOND)

typedef struct GatewaySettings {
    const char *runtime, *config;
    bool check;
} GatewaySettings;

static int gateway_read_file(const char *path, json_t **ret) {
    _cleanup_free_ char *text = malloc(GATEWAY_STATUS_MAX);
    _cleanup_json_ json_t *value = NULL;
    int n = text ? file_read_text(path, text, GATEWAY_STATUS_MAX) : -ENOMEM;

    if (n < 0)
        return n;
    value = json_loadb(text, (size_t)n, 0, NULL);
    if (!json_is_object(value))
        return -EBADMSG;
    *ret = reply_shown(value);
    return *ret ? 0 : -ENOMEM;
}

static int gateway_complain(const char *path, int r) {
    if (r == -ENOENT)
        return complain(STATUS_NOT_RUNNING,
                        "profd-gateway does not run here: there is no '%s'; 'systemctl start "
                        "profd-gateway' starts it.",
                        path);
    if (r == -EBADMSG)
        return complain(STATUS_FAILED, "'%s' is no state of a profd-gateway.", path);
    return complain(r == -EACCES ? STATUS_NOT_PERMITTED : STATUS_FAILED, "Failed to read '%s': %s.",
                    path, strerror(-r));
}

/* Numbers of processes are used again, so the name counts too. */
static bool gateway_is_there(uint64_t pid) {
    char path[64], name[32];
    int n;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", pid);
    n = file_read_text(path, name, sizeof(name));
    /* If /proc hides other users' processes, only the age of the state shows that it is gone. */
    return n < 0 ? n != -ENOENT || access("/proc/1/comm", F_OK) < 0
                 : strcmp(name, GATEWAY_PROGRAM) == 0;
}

static GatewayLife gateway_life(const json_t *status, uint64_t now_us) {
    uint64_t limit_us =
        GATEWAY_INTERVALS_MAX * reply_count(status, "intervalUsec") + GATEWAY_SLACK_US;
    uint64_t at_us = reply_count(status, "nowUsec");

    if (!gateway_is_there(reply_count(status, "pid")))
        return GATEWAY_GONE;
    return now_us > at_us && now_us - at_us > limit_us ? GATEWAY_STALE : GATEWAY_RUNNING;
}

static int gateway_exit_status(const json_t *status, GatewayLife life, bool check) {
    if (life == GATEWAY_GONE)
        return complain(STATUS_NOT_RUNNING, "profd-gateway is not running; it ended without being "
                                            "asked to, see 'journalctl -u profd-gateway'.");
    if (life == GATEWAY_STALE)
        return complain(STATUS_TIMED_OUT, "profd-gateway has not written its state for long; its "
                                          "watchdog restarts it if it hangs.");
    return check && gateway_view_is_degraded(status) ? STATUS_DEGRADED : STATUS_OK;
}

static int gateway_print_json(Context *c, json_t *status, GatewayLife life) {
    if (json_object_set_new(status, "state", remote_word(gateway_life_names[life])) < 0)
        return complain(STATUS_FAILED, "Failed to print the state: %s.", strerror(ENOMEM));
    return reply_print(c, status);
}

static int gateway_command_status(Context *c, const GatewaySettings *o) {
    _cleanup_json_ json_t *status = NULL;
    _cleanup_free_ char *path = NULL;
    uint64_t now_us = figure_now_us();
    GatewayLife life;
    int r;

    if (asprintf(&path, "%s/status.json", o->runtime ?: "/run/profd-gateway") < 0) {
        path = NULL;
        return complain(STATUS_FAILED, "Failed to read the state: %s.", strerror(ENOMEM));
    }
    r = gateway_read_file(path, &status);
    if (r < 0)
        return gateway_complain(path, r);
    life = gateway_life(status, now_us);
    if (c->json) {
        r = gateway_print_json(c, status, life);
        if (r != STATUS_OK)
            return r;
    } else if (!o->check || !c->quiet) {
        context_page(c);
        gateway_view_show(c, status, life, now_us);
    }
    return gateway_exit_status(status, life, o->check);
}

static int gateway_command_test(const GatewaySettings *o, char *name) {
    char *arguments[7] = {(char *)GATEWAY_PROGRAM, (char *)"--test", name};
    size_t n = 3;

    if (o->config) {
        arguments[n++] = (char *)"--config";
        arguments[n++] = (char *)o->config;
    }
    (void)execvp(GATEWAY_PROGRAM, arguments);
    if (errno == ENOENT)
        (void)execv(PROFD_SBINDIR "/" GATEWAY_PROGRAM, arguments);
    return complain(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_FAILED,
                    "Failed to run " GATEWAY_PROGRAM ", is its package installed?: %s.",
                    strerror(errno));
}

static int gateway_complain_usage(const char *verb) {
    static const char *const verbs[] = {"status", "test"};
    NearNames near = {};

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        near_offer(&near, verbs[i], near_distance(verbs[i], verb));
    if (near.n > 0 && strcmp(near.names[0].name, verb) != 0)
        return complain(STATUS_USAGE, "There is no command 'gateway %s'. Did you mean '%s'?", verb,
                        near.names[0].name);
    return complain(STATUS_USAGE,
                    "The usage is 'profctl gateway status' or 'profctl gateway test NAME'.");
}

static int gateway_run(Context *c, void *settings, char **arguments) {
    const GatewaySettings *o = settings;

    if (strcmp(arguments[0], "status") == 0 && !arguments[1])
        return gateway_command_status(c, o);
    if (strcmp(arguments[0], "test") == 0 && arguments[1])
        return gateway_command_test(o, arguments[1]);
    return gateway_complain_usage(arguments[0]);
}

/* clang-format off */
static const Option gateway_options[] = {
    {0, "check",   NULL,     "End with status 7 when a destination fails, profd is away or the configuration has problems", option_flag, offsetof(GatewaySettings, check)},
    {0, "config",  "FILE",   "The configuration with the destination to test (default: /etc/profd/gateway.conf)",           option_string, offsetof(GatewaySettings, config)},
    {0, "runtime", "FOLDER", "Where the gateway keeps its state (default: /run/profd-gateway)",                             option_string, offsetof(GatewaySettings, runtime)},
    {},
};
/* clang-format on */

const Command command_gateway = {
    .name = "gateway",
    .arguments = "status|test NAME",
    .n_min = 1,
    .n_max = 2,
    .summary = "Show how far profd-gateway has sent what, or test one of its destinations",
    .notes =
        "'status' shows for each destination what was sent, what waits in the store of profd, "
        "what\nwas refused, the last error and what helps. 'test NAME' sends a profile of three "
        "stacks to\n[Send NAME] and asks the engine for it.",
    .options = gateway_options,
    .settings_size = sizeof(GatewaySettings),
    .run = gateway_run,
};
