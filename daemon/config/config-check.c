/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "config/config-private.h"

/*
 * Checks combinations of keys after all were read. Only values that somebody has written are
 * reported, at their line; a default that does not fit is corrected without a message.
 */

/* The line of a session's key, or NULL if it has its default. */
static const ConfigOrigin *config_check_said(const ConfigLoad *load, ptrdiff_t session,
                                             const char *name) {
    const ConfigOrigin *origin =
        config_load_origin(load, config_key(CONFIG_SESSION, name), session);

    return origin->path ? origin : NULL;
}

static void config_check_buffer(ConfigLoad *load, ptrdiff_t i) {
    const ConfigOrigin *at = config_check_said(load, i, "BufferSize");
    SessionConfig *session = &load->config->sessions[i];

    if (session->buffer_bytes <= load->config->max_buffer_total_bytes)
        return;
    if (at)
        config_report(&load->files, at->path, at->line,
                      "BufferSize= is more than MaxBufferTotal=: one ring alone may have %" PRIu64
                      "K at most",
                      load->config->max_buffer_total_bytes >> 10);
    while (session->buffer_bytes > load->config->max_buffer_total_bytes)
        session->buffer_bytes /= 2;
}

static void config_check_frequency(ConfigLoad *load, ptrdiff_t i) {
    const ConfigOrigin *at = config_check_said(load, i, "Frequency");
    SessionConfig *session = &load->config->sessions[i];
    uint64_t max = load->config->max_frequency_hz;

    /* CONFIG_FREQUENCY_MAX never exceeds the limit. */
    if (max == 0 || session->frequency_hz <= max || session->frequency_hz == CONFIG_FREQUENCY_MAX)
        return;
    if (at)
        config_report(&load->files, at->path, at->line,
                      "Frequency= is more than MaxFrequency=: it may be %" PRIu64 " at most", max);
    session->frequency_hz = max;
}

static void config_check_refuse_target(ConfigLoad *load, ptrdiff_t i, const char *key,
                                       const char *other) {
    const ConfigOrigin *at = config_check_said(load, i, key);

    config_report(&load->files, at->path, at->line,
                  "%s= and %s= do not go together: keep one of them, or make two sessions", key,
                  other);
}

static void config_check_target(ConfigLoad *load, ptrdiff_t i) {
    SessionConfig *session = &load->config->sessions[i];
    const char *other = *session->cgroup ? "Cgroup" : "Pid";

    if (session->n_tids > 0 && (*session->cgroup || session->n_pids > 0)) {
        config_check_refuse_target(load, i, "Tid", other);
        session->n_tids = 0;
        memset(session->tids, 0, sizeof(session->tids));
    }
    if (session->n_pids > 0 && *session->cgroup) {
        config_check_refuse_target(load, i, "Pid", other);
        session->n_pids = 0;
        memset(session->pids, 0, sizeof(session->pids));
    }
}

static void config_check_rings(ConfigLoad *load, ptrdiff_t i) {
    const ConfigOrigin *at = config_check_said(load, i, "KernelSamples");
    SessionConfig *session = &load->config->sessions[i];

    if (session->user_samples || session->kernel_samples)
        return;
    config_report(&load->files, at->path, at->line,
                  "KernelSamples=no with UserSamples=no leaves nothing to sample: one of them is "
                  "to be yes, or Enabled=no");
    session->user_samples = session->kernel_samples = true;
}

/* The most that the segments of a session may take, if it is known in bytes. */
static uint64_t config_check_budget(const Config *config, const SessionConfig *session) {
    uint64_t all =
        config->storage == STORAGE_VOLATILE ? config->runtime_max_use_bytes : config->max_use_bytes;
    uint64_t own = session->max_use_bytes > 0 ? session->max_use_bytes : CONFIG_NO_LIMIT;

    return MIN(own, all & CONFIG_PERCENT ? CONFIG_NO_LIMIT : all);
}

static void config_check_segment(ConfigLoad *load, ptrdiff_t i) {
    const ConfigOrigin *at = config_check_said(load, i, "MaxSegmentSize");
    SessionConfig *session = &load->config->sessions[i];
    uint64_t most = config_check_budget(load->config, session) / 2;

    if (session->max_segment_bytes > 0 && session->max_segment_bytes <= most)
        return;
    if (most >= CONFIG_NO_LIMIT / 2)
        return;
    if (at)
        config_report(&load->files, at->path, at->line,
                      "MaxSegmentSize= is more than half of what may be stored: it may be %" PRIu64
                      "K at most",
                      most >> 10);
    session->max_segment_bytes = most;
}

static void config_check_count(ConfigLoad *load) {
    uint32_t enabled = 0;

    for (uint32_t i = 0; i < load->config->n_sessions; i++) {
        SessionConfig *session = &load->config->sessions[i];
        const ConfigOrigin *at;

        enabled += session->enabled;
        if (!session->enabled || enabled <= load->config->max_sessions)
            continue;
        at = config_check_said(load, i, "Enabled");
        config_report(&load->files, at ? at->path : load->files.list[load->files.n - 1].path,
                      at ? at->line : 0,
                      "[Session %s] is not started: MaxSessions=%" PRIu32 " are running then",
                      session->name, load->config->max_sessions);
        session->enabled = false;
    }
}

void config_check_session(ConfigLoad *load, ptrdiff_t session) {
    static void (*const checks[])(ConfigLoad *, ptrdiff_t) = {
        config_check_buffer, config_check_frequency, config_check_target, config_check_rings,
        config_check_segment};

    for (size_t k = 0; k < ARRAY_SIZE(checks); k++)
        checks[k](load, session);
}

void config_check(ConfigLoad *load) {
    for (uint32_t i = 0; i < load->config->n_sessions; i++)
        config_check_session(load, i);
    config_check_count(load);
}
