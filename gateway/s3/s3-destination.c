/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-destination.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-step.h"
#include "transport/retry.h"
#include "util/clock.h"

/* A destination from its configuration and its state, and what others may know of it. */

/* A window that is due for so long is late. */
#define S3_GRACE_NS (10 * NS_PER_SECOND)
#define S3_RATE                                                                                    \
    { .interval_ns = 60 * NS_PER_SECOND, .burst = 1 }

struct S3Destination {
    S3Run run;
};

int s3_destination_check(const SendConfig *config, const char **ret_problem) {
    bool snapshots = s3_run_sends_snapshots(config);

    if (strcmp(config->content, "profiles") == 0) {
        *ret_problem = "a store takes recordings or snapshots, and no profiles";
        return -EINVAL;
    }
    if (config->key_template[0] && s3_key_check(config->key_template, snapshots, ret_problem) < 0)
        return -EINVAL;
    if (!snapshots && config->object_interval_ns < NS_PER_SECOND)
        *ret_problem = "an object has at least a second of recordings";
    else if (config->share_percent != 0 && config->share_percent != 100)
        *ret_problem = "a recording says nothing of a share: it is sent whole";
    else if (config->token_file[0] && !s3_run_is_folder(config))
        *ret_problem = "a store takes ACCESS-KEY:SECRET of PasswordFile=, and no token";
    else
        return 0;
    return -EINVAL;
}

bool s3_destination_end(S3Destination *destination) {
    S3Run *run = destination ? &destination->run : NULL;
    bool has_ended;

    if (!run)
        return true;
    has_ended = s3_task_cancel(run->task);
    has_ended = s3_upload_cancel(run->upload) && has_ended;
    run->cleanup = s3_cleanup_cancel(run->cleanup);
    loop_source_free(run->timer);
    /* A task that hangs may change the state, so leak the destination as it is. */
    if (has_ended && run->worker)
        s3_run_save(run);
    run->worker = disk_worker_free(run->worker);
    if (!has_ended)
        return false;
    s3_item_done(&run->item);
    s3_pending_done(&run->pending);
    s3_pending_done(&run->listed);
    s3_state_done(&run->state);
    free(destination);
    return true;
}

S3Destination *s3_destination_free(S3Destination *destination) {
    (void)s3_destination_end(destination);
    return NULL;
}

/* What was uploaded before has the same keys, so the new beginning doubles nothing. */
static void s3_destination_set_aside(S3Run *run, const char *path) {
    char sentence[S3_SENTENCE_MAX];
    _cleanup_free_ char *aside = NULL;

    if (asprintf(&aside, "%s.damaged", path) < 0)
        aside = NULL;
    if (aside)
        (void)rename(path, aside);
    (void)snprintf(sentence, sizeof(sentence),
                   "The state was damaged: %s, and the file is kept as '%.60s.s3.damaged'.",
                   s3_run_sends_snapshots(run->config)
                       ? "snapshots that profd still has are uploaded again"
                       : "windows before this start are not uploaded",
                   run->config->name);
    s3_run_keep_error(run, sentence, SEND_STATUS_LOST);
    log_struct(LOG_LEVEL_WARNING, 0,
               LOG_FIELDS({"PROFD_EVENT", "gateway-state-damaged"}, s3_run_field(run)),
               "Destination '%s' starts afresh: %s", run->config->name, sentence);
}

static int s3_destination_load(S3Run *run, const char *folder) {
    _cleanup_free_ char *path = NULL;
    const SendConfig *config = run->config;
    int r;

    if (asprintf(&path, "%s/%s" S3_STATE_SUFFIX, folder, config->name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    r = s3_state_load(path, &run->state);
    if (r == -EBADMSG)
        s3_destination_set_aside(run, path);
    else if (r < 0 && r != -ENOENT)
        return log_struct(LOG_LEVEL_ERROR, r, LOG_FIELDS(s3_run_field(run)),
                          "Failed to read the state of destination '%s' from '%s': %m",
                          config->name, path);
    if (run->state.key[0])
        run->state.counters.repeated++;
    /* A reload may have made a folder of a store. */
    if (s3_run_is_folder(config))
        run->state.is_multipart = false;
    if (run->state.until_ns == 0 && !s3_run_sends_snapshots(config))
        run->state.until_ns =
            s3_schedule_first(clock_ns(CLOCK_REALTIME), config->object_interval_ns);
    return 0;
}

static void s3_destination_init(S3Run *run, const S3DestinationOptions *options) {
    const SendConfig *config = options->config;
    const GatewayConfig *gateway = options->gateway;

    *run = (S3Run){.config = config,
                   .gateway = gateway,
                   .loop = options->loop,
                   .profd = {.socket = gateway->socket[0] ? gateway->socket : NULL,
                             .session = gateway->session[0] ? gateway->session : "default",
                             .folder = options->state_folder},
                   .item = {.object.fd = -1},
                   .error_rate = S3_RATE,
                   .back_rate = S3_RATE,
                   .lost_rate = S3_RATE,
                   .state_rate = S3_RATE};
    s3_target_init(&run->target, config, options->transport, options->loop);
    run->target.on_problem = s3_run_note;
    run->target.userdata = run;
    (void)snprintf(run->host, sizeof(run->host), "%s", gateway->host);
    if (!run->host[0])
        (void)gethostname(run->host, sizeof(run->host) - 1);
    run->spread_ns = s3_schedule_spread(run->host, config->name, config->object_interval_ns);
}

int s3_destination_new(const S3DestinationOptions *options, S3Destination **ret) {
    _cleanup_(s3_destination_freep) S3Destination *destination = NULL;
    const char *problem;
    S3Run *run;
    int r = s3_destination_check(options->config, &problem);

    if (r < 0)
        return r;
    destination = calloc(1, sizeof(*destination));
    if (!destination)
        return -ENOMEM;
    run = &destination->run;
    s3_destination_init(run, options);
    r = loop_add_deferred(options->loop, s3_run_step, run, &run->timer);
    if (r == 0)
        r = s3_destination_load(run, options->state_folder);
    run->loss.noted = s3_run_losses(run);
    if (r == 0)
        r = disk_worker_new(options->loop, &run->worker);
    if (r == 0)
        r = loop_trigger(run->timer);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(destination);
    return 0;
}

/* Windows that ended are in the backlog, but for those that cannot be there yet. */
static void s3_destination_windows(const S3Run *run, uint64_t now_ns, DestinationStatus *status) {
    const S3State *state = &run->state;
    uint64_t interval = run->config->object_interval_ns;
    uint64_t due_ns = s3_schedule_due(now_ns - S3_GRACE_NS, interval, run->spread_ns);
    RangeList late = state->unsent;

    status->newest_ns = run->newest_ns;
    (void)range_list_add(&late, (Range){state->until_ns, due_ns});
    (void)range_list_remove(&late, (Range){MAX(due_ns, 1U), UINT64_MAX});
    status->ranges = late.n;
    status->backlog_ns = range_list_total(&late);
    status->backlog_since_ns = late.n > 0 ? late.items[0].since_ns : 0;
}

static void s3_destination_backlog(const S3Run *run, DestinationStatus *status) {
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    const S3Pending *pending = &run->pending;
    size_t oldest = pending->n_failed > 0 ? pending->first_failed : pending->next;
    size_t waiting = pending->n_failed + pending->n - pending->next;

    status->live_until_ns = now_ns;
    if (!s3_run_sends_snapshots(run->config)) {
        s3_destination_windows(run, now_ns, status);
        return;
    }
    status->newest_ns = now_ns;
    if (waiting > 0) {
        status->ranges = waiting;
        status->backlog_since_ns = pending->items[oldest].created_us * NS_PER_US;
        status->live_until_ns = status->backlog_since_ns;
    }
}

void s3_destination_status(const S3Destination *destination, DestinationStatus *ret) {
    const S3Run *run = &destination->run;
    const S3Counters *counters = &run->state.counters;
    const S3Target *target = &run->target;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t wait_ns = run->retry_ns > now_ns ? run->retry_ns - now_ns : 0;

    *ret = (DestinationStatus){.name = run->config->name,
                               .type = run->config->type,
                               .last_success_ns = counters->last_success_ns,
                               .sent_intervals = counters->objects,
                               .sent_requests = counters->requests + target->requests,
                               .sent_bytes = counters->bytes + target->sent_bytes,
                               .sent_samples = counters->samples,
                               .refused_intervals = counters->refused,
                               .refused_samples = counters->refused_samples,
                               .expired_ns = counters->expired_ns,
                               .missing_ns = counters->missing_ns,
                               .deleted_ns = counters->deleted_ns,
                               .repeated_requests = counters->repeated,
                               .retries = counters->retries + target->retries,
                               .is_waiting = wait_ns > 0,
                               .retry_ns = clock_ns(CLOCK_REALTIME) + wait_ns,
                               .last_http_status = run->last_status,
                               .error_status = run->error_status,
                               .last_error_ns = run->last_error_ns};
    memcpy(ret->last_error, run->last_error, sizeof(ret->last_error));
    s3_destination_backlog(run, ret);
}
