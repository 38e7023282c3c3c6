/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-destination.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-private.h"
#include "util/clock.h"

/* A destination from its configuration and its state, and what others may know of it. */

#define S3_REGION_DEFAULT "us-east-1"
#define S3_RATE                                                                                    \
    { .interval_ns = 60 * NS_PER_SECOND, .burst = 1 }

int s3_destination_check(const SendConfig *config, const char **ret_problem) {
    bool snapshots = s3_destination_sends_snapshots(config);

    if (config->key_template[0] && s3_key_check(config->key_template, snapshots, ret_problem) < 0)
        return -EINVAL;
    if (!snapshots && config->object_interval_ns < NS_PER_SECOND)
        *ret_problem = "an object has at least a second of recordings";
    else if (config->share_percent != 0 && config->share_percent != 100)
        *ret_problem = "a recording says nothing of a share: it is sent whole";
    else if (config->token_file[0])
        *ret_problem = "a store takes ACCESS-KEY:SECRET of PasswordFile=, and no token";
    else
        return 0;
    return -EINVAL;
}

S3Destination *s3_destination_free(S3Destination *self) {
    if (!self)
        return NULL;
    self->task = s3_task_cancel(self->task);
    self->upload = s3_upload_cancel(self->upload);
    self->cleanup = s3_cleanup_cancel(self->cleanup);
    loop_source_free(self->timer);
    if (self->state_path)
        s3_destination_save(self);
    s3_item_done(&self->item);
    s3_pending_done(&self->pending);
    s3_state_done(&self->state);
    free(self->state_path);
    free(self);
    return NULL;
}

static int s3_destination_load(S3Destination *self) {
    const SendConfig *config = self->options.config;
    int r;

    if (asprintf(&self->state_path, "%s/%s.s3", self->options.state_folder, config->name) < 0) {
        self->state_path = NULL;
        return -ENOMEM;
    }
    r = s3_state_load(self->state_path, &self->state);
    if (r == -EBADMSG)
        (void)log_warning(r, "The state of destination '%s' in '%s' is damaged, beginning anew",
                          config->name, self->state_path);
    else if (r < 0 && r != -ENOENT)
        return log_error(r, "Failed to read the state of destination '%s' from '%s': %m",
                         config->name, self->state_path);
    if (self->state.key[0])
        self->state.counters.repeated++;
    if (self->state.until_ns == 0 && !s3_destination_sends_snapshots(config))
        self->state.until_ns =
            s3_schedule_first(clock_ns(CLOCK_REALTIME), config->object_interval_ns);
    return 0;
}

static void s3_destination_init(S3Destination *self, const S3DestinationOptions *options) {
    const SendConfig *config = options->config;
    const GatewayConfig *gateway = options->gateway;

    *self = (S3Destination){.options = *options,
                            .target = {.config = config,
                                       .transport = options->transport,
                                       .loop = options->loop,
                                       .on_problem = s3_destination_note,
                                       .userdata = self},
                            .profd = {.socket = gateway->socket[0] ? gateway->socket : NULL,
                                      .session = gateway->session[0] ? gateway->session : "default",
                                      .folder = options->state_folder},
                            .item = {.object.fd = -1},
                            .error_rate = S3_RATE,
                            .state_rate = S3_RATE};
    (void)snprintf(self->target.sigv4, sizeof(self->target.sigv4), "aws:amz:%s:s3",
                   config->region[0] ? config->region : S3_REGION_DEFAULT);
    (void)snprintf(self->host, sizeof(self->host), "%s", gateway->host);
    if (!self->host[0])
        (void)gethostname(self->host, sizeof(self->host) - 1);
    self->spread_ns = s3_schedule_spread(self->host, config->name, config->object_interval_ns);
}

int s3_destination_new(const S3DestinationOptions *options, S3Destination **ret) {
    _cleanup_(s3_destination_freep) S3Destination *self = NULL;
    const char *problem;
    int r = s3_destination_check(options->config, &problem);

    if (r < 0)
        return r;
    self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    s3_destination_init(self, options);
    r = loop_add_deferred(options->loop, s3_destination_step, self, &self->timer);
    if (r == 0)
        r = s3_destination_load(self);
    if (r == 0)
        r = loop_trigger(self->timer);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(self);
    return 0;
}

/* Everything that has ended is uploaded, or it is in the backlog. */
static void s3_destination_backlog(const S3Destination *self, DestinationStatus *status) {
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    uint64_t end_ns = s3_schedule_first(now_ns, self->options.config->object_interval_ns);
    bool snapshots = s3_destination_sends_snapshots(self->options.config);
    /* The list is the task's while it runs. */
    size_t waiting = snapshots && !self->task ? self->pending.n - self->pending.next : 0;

    status->live_until_ns = now_ns;
    if (waiting > 0) {
        status->ranges = waiting;
        status->backlog_since_ns = self->pending.items[self->pending.next].created_us * NS_PER_US;
        status->live_until_ns = status->backlog_since_ns;
    } else if (!snapshots && end_ns > self->state.until_ns) {
        status->ranges = 1;
        status->backlog_ns = end_ns - self->state.until_ns;
        status->backlog_since_ns = self->state.until_ns;
    }
}

void s3_destination_status(const S3Destination *self, DestinationStatus *ret) {
    const S3Counters *counters = &self->state.counters;
    const S3Target *target = &self->target;

    *ret = (DestinationStatus){.name = self->options.config->name,
                               .type = self->options.config->type,
                               .last_success_ns = counters->last_success_ns,
                               .sent_intervals = counters->objects,
                               .sent_requests = counters->requests + target->requests,
                               .sent_bytes = counters->bytes + target->sent_bytes,
                               .sent_samples = counters->samples,
                               .refused_intervals = counters->refused,
                               .refused_samples = counters->refused_samples,
                               .expired_ns = counters->expired_ns,
                               .missing_ns = counters->missing_ns,
                               .repeated_requests = counters->repeated,
                               .retries = counters->retries + target->retries,
                               .is_waiting = clock_ns(CLOCK_REALTIME) < self->retry_ns,
                               .retry_ns = self->retry_ns,
                               .last_http_status = self->last_status,
                               .last_error_ns = self->last_error_ns};
    memcpy(ret->last_error, self->last_error, sizeof(ret->last_error));
    s3_destination_backlog(self, ret);
}
