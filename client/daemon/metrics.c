/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <string.h>

#include "client/frame/timestamp.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl metrics`: prints the daemon's counters in the text format of Prometheus, for a collector
 * or for people. The format requires that all values of a metric follow each other, with one HELP
 * and TYPE, whatever the order in which the daemon sends them.
 */

typedef struct MetricsSettings {
    OptionTimestamp watch;
} MetricsSettings;

/* Whether it is a valid name of a metric or label; an invalid one would make the line
 * unreadable. */
static bool metrics_is_name(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");

    return n > 0 && !name[n] && !(*name >= '0' && *name <= '9');
}

/* Escapes backslash and quote, which have a meaning in the format. Newlines were escaped before. */
static void metrics_print_quoted(Buffer *out, const char *text, bool quotes) {
    for (; *text; text++) {
        if (*text == '\\' || (quotes && *text == '"'))
            text_putc(out, '\\');
        text_putc(out, *text);
    }
}

static void metrics_print_value(Buffer *out, double value) {
    if (isnan(value))
        text_puts(out, "NaN");
    else if (isinf(value))
        text_puts(out, value > 0 ? "+Inf" : "-Inf");
    else if (value == floor(value) && fabs(value) < 0x1p53)
        text_printf(out, "%.0f", value);
    else
        text_printf(out, "%.16g", value);
}

static void metrics_print_metric(Buffer *out, const json_t *metric) {
    const json_t *labels = reply_member(metric, "labels"), *value;
    const char *label, *before = "{";

    text_puts(out, reply_string(metric, "name"));
    json_object_foreach((json_t *)labels, label, value) {
        if (!metrics_is_name(label) || !json_is_string(value))
            continue;
        text_printf(out, "%s%s=\"", before, label);
        metrics_print_quoted(out, json_string_value(value), true);
        text_putc(out, '"');
        before = ",";
    }
    text_puts(out, *before == ',' ? "} " : " ");
    metrics_print_value(out, reply_number(metric, "value"));
    text_putc(out, '\n');
}

/* Whether an earlier value of this metric was printed. */
static bool metrics_is_reported(const json_t *metrics, size_t i) {
    const char *name = reply_string(json_array_get(metrics, i), "name");

    for (size_t k = 0; k < i; k++)
        if (strcmp(reply_string(json_array_get(metrics, k), "name"), name) == 0)
            return true;
    return false;
}

static void metrics_print_family(Buffer *out, const json_t *metrics, size_t from) {
    const json_t *first = json_array_get(metrics, from), *metric;
    const char *name = reply_string(first, "name");
    size_t i;

    text_printf(out, "# HELP %s ", name);
    metrics_print_quoted(out, reply_string(first, "help"), false);
    text_printf(out, "\n# TYPE %s %s\n", name,
                strcmp(reply_string(first, "type"), "counter") == 0 ? "counter" : "gauge");
    json_array_foreach(metrics, i,
                       metric) if (i >= from && strcmp(reply_string(metric, "name"), name) == 0)
        metrics_print_metric(out, metric);
}

static int metrics_print(void *userdata, const json_t *reply) {
    const json_t *metrics = reply_member(reply, "metrics");
    Context *c = userdata;

    if (c->json)
        return reply_print(c, metrics ? metrics : reply);
    for (size_t i = 0; i < json_array_size(metrics); i++)
        if (metrics_is_name(reply_string(json_array_get(metrics, i), "name")) &&
            !metrics_is_reported(metrics, i))
            metrics_print_family(&c->out.buffer, metrics, i);
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
