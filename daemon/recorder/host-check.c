/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/host-check.h"

#include <errno.h>
#include <stdio.h>

#include "capture/plan/limit.h"
#include "keeper/serve/local.h"
#include "recorder/memory-limit.h"
#include "util/log.h"

/*
 * Maps each message of capture/plan/check.h to the line of its key. profd --check-config opens
 * events with the rights of the user who runs it; a refusal says nothing about the rights of the
 * service, so it counts as not checked.
 */

enum { PROBLEM_MAX = 2048 };

static const char online_path[] = "/sys/devices/system/cpu/online";

typedef struct Checking {
    const Config *config;
    const SessionConfig *session;
    ConfigProblem on_problem;
    void *userdata;
    int problems;
} Checking;

/* A default value has no line of its own, so its problem is reported for the configuration as a
 * whole. */
static ConfigOrigin host_check_origin_of(const Checking *checking, const char *key) {
    const Config *config = checking->config;
    ConfigOrigin origin =
        config_origin(config, config_key("Session", key), checking->session->name);

    if (!origin.path)
        origin.path = config->n_paths > 0 ? config->paths[0] : "profd.conf";
    return origin;
}

static void host_check_on_report(void *userdata, CheckResult result, const char *key,
                                 const char *sentence) {
    Checking *checking = userdata;
    ConfigOrigin origin = host_check_origin_of(checking, key);
    char text[PROBLEM_MAX];

    snprintf(text, sizeof(text), "%s= of session '%s': %s", key, checking->session->name, sentence);
    if (result == CHECK_WRONG && checking->session->enabled) {
        checking->problems++;
        checking->on_problem(checking->userdata, origin.path, origin.line, text);
    } else
        log_notice("%s:%u: %s%s", origin.path, origin.line,
                   result == CHECK_UNKNOWN ? "Not checked: " : "", text);
}

int host_check_session(const CheckOptions *options, const Config *config,
                       const SessionConfig *session, ConfigProblem on_problem, void *userdata) {
    Checking checking = {config, session, on_problem, userdata, 0};
    CheckOptions with_report = *options;
    int r;

    with_report.report = host_check_on_report;
    with_report.userdata = &checking;
    r = check_session(&with_report, session);
    return r < 0 ? r : checking.problems;
}

static int host_check_all(const Config *config, const CheckOptions *options) {
    int problems = 0;

    for (uint32_t i = 0; i < config->n_sessions; i++) {
        int r = host_check_session(options, config, &config->sessions[i], config_log_problem, NULL);

        if (r < 0)
            return r;
        problems += r;
    }
    return problems;
}

int host_check_config(const Config *config) {
    _cleanup_(keeper_disconnectp) Keeper *keeper = NULL;
    _cleanup_(cpu_list_done) CpuList online = {};
    CheckOptions options = {
        .online = &online,
        .max_hz = limit_frequency(config->max_frequency_hz, limit_sample_rate(), 0),
        .buffer_total_bytes = memory_for_rings(config->max_buffer_total_bytes, memory_of_host("")),
        .is_elsewhere = true,
    };
    int r = cpu_list_read(online_path, &online);

    if (r == 0)
        r = keeper_local(&keeper);
    options.keeper = keeper;
    return r == 0 ? host_check_all(config, &options) : r;
}
