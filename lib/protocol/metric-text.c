/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/metric-text.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

/*
 * The format requires that all values of a metric follow each other, with one HELP and TYPE,
 * whatever the order in which the daemon sends them.
 */

static const char *metric_text_string(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* Whether it is a valid name of a metric or label; an invalid one would make the line
 * unreadable. */
static bool metric_text_is_name(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");

    return n > 0 && !name[n] && !(*name >= '0' && *name <= '9');
}

/* Escapes what has a meaning in the format: backslash, newline and, in a label, the quote. */
static void metric_text_put_quoted(Buffer *out, const char *text, bool quotes) {
    for (; *text; text++) {
        if (*text == '\\' || (quotes && *text == '"'))
            text_putc(out, '\\');
        if (*text == '\n')
            text_puts(out, "\\n");
        else
            text_putc(out, *text);
    }
}

static void metric_text_put_value(Buffer *out, double value) {
    if (isnan(value))
        text_puts(out, "NaN");
    else if (isinf(value))
        text_puts(out, value > 0 ? "+Inf" : "-Inf");
    else if (value == floor(value) && fabs(value) < 0x1p53)
        text_printf(out, "%.0f", value);
    else
        text_printf(out, "%.16g", value);
}

static void metric_text_put_one(Buffer *out, const json_t *metric) {
    const json_t *labels = json_object_get(metric, "labels"), *value;
    const char *label, *before = "{";

    text_puts(out, metric_text_string(metric, "name"));
    json_object_foreach((json_t *)labels, label, value) {
        if (!metric_text_is_name(label) || !json_is_string(value))
            continue;
        text_printf(out, "%s%s=\"", before, label);
        metric_text_put_quoted(out, json_string_value(value), true);
        text_putc(out, '"');
        before = ",";
    }
    text_puts(out, *before == ',' ? "} " : " ");
    metric_text_put_value(out, json_number_value(json_object_get(metric, "value")));
    text_putc(out, '\n');
}

/* Whether an earlier value of this metric has put its whole family. */
static bool metric_text_is_put(const json_t *metrics, size_t i) {
    const char *name = metric_text_string(json_array_get(metrics, i), "name");

    for (size_t k = 0; k < i; k++)
        if (strcmp(metric_text_string(json_array_get(metrics, k), "name"), name) == 0)
            return true;
    return false;
}

static void metric_text_put_family(Buffer *out, const json_t *metrics, size_t from) {
    const json_t *first = json_array_get(metrics, from), *metric;
    const char *name = metric_text_string(first, "name");
    size_t i;

    text_printf(out, "# HELP %s ", name);
    metric_text_put_quoted(out, metric_text_string(first, "help"), false);
    text_printf(out, "\n# TYPE %s %s\n", name,
                strcmp(metric_text_string(first, "type"), "counter") == 0 ? "counter" : "gauge");
    json_array_foreach(
        metrics, i, metric) if (i >= from && strcmp(metric_text_string(metric, "name"), name) == 0)
        metric_text_put_one(out, metric);
}

void metric_text_put(Buffer *out, const json_t *metrics) {
    for (size_t i = 0; i < json_array_size(metrics); i++)
        if (metric_text_is_name(metric_text_string(json_array_get(metrics, i), "name")) &&
            !metric_text_is_put(metrics, i))
            metric_text_put_family(out, metrics, i);
}
