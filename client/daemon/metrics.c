/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/timestamp.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/metric-text.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl metrics`: prints the daemon's counters in the text format of Prometheus, for a collector
 * or for people.
 */

typedef struct MetricsSettings {
    OptionTimestamp watch;
} MetricsSettings;

static int metrics_print(void *userdata, const json_t *reply) {
    const json_t *metrics = reply_member(reply, "metrics");
    Context *c = userdata;

    if (c->json)
        return reply_print(c, metrics ? metrics : reply);
    metric_text_put(&c->out.buffer, metrics);
    return STATUS_OK;
}

static int metrics_print_again(void *userdata, const json_t *reply) {
    Context *c = userdata;
    int r = metrics_print(userdata, reply);

    if (!c->json)
        text_putc(&c->out.buffer, '\n');
    return output_flush(&c->out) < 0 ? STATUS_FAILED : r;
}

static int metrics_run(Context *c, void *settings, char **arguments) {
    const MetricsSettings *o = settings;
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_json_ json_t *reply = NULL;
    json_t *parameters;
    int r = remote_open(c, &remote);

    if (r != STATUS_OK)
        return r;
    if (o->watch.set) {
        parameters = json_pack("{s:I}", "intervalUsec", (json_int_t)o->watch.us);
        remote_set_timeout(remote, REMOTE_FOREVER);
        return remote_each(remote, "GetMetrics", parameters, metrics_print_again, c);
    }
    r = remote_call(remote, "GetMetrics", json_object(), &reply);
    if (r != STATUS_OK)
        return r;
    if (!c->json)
        context_page(c);
    return metrics_print(c, reply);
}

/* clang-format off */
static const Option metrics_options[] = {
    {'w', "watch", "SPAN", "Show them again after each SPAN, such as 5s", option_span, offsetof(MetricsSettings, watch)},
    {},
};
/* clang-format on */

const Command command_metrics = {
    .name = "metrics",
    .arguments = "",
    .summary = "Print the daemon's counters in the text format of Prometheus",
    .notes = "--json prints an array of metrics, and --watch an array each time. Without --json "
             "an\nempty line separates the texts of --watch.",
    .options = metrics_options,
    .settings_size = sizeof(MetricsSettings),
    .run = metrics_run,
    .live = true,
};
