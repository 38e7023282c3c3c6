/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-ask.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "protocol/value.h"
#include "transport/transport.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Each engine that can be asked has a row: how it is asked, and how its answer is understood. An
 * engine shows a profile some seconds after it took it, so it is asked several times. Answers are
 * bounded by the transport, and not trusted.
 */

#define ASK_EVERY_NS    NS_PER_SECOND
#define GOLDEN_TOTAL_NS 505050500
#define GOLDEN_LEAF_NS  404040400

enum { ASK_TIMES = 20 };

typedef struct AskRow {
    const char *type;
    const char *method, *content_type;
    /* The path with its query, and the body. */
    void (*request)(const GatewayAsk *ask, Buffer *path, Buffer *body);
    /* The sum of all samples and of those in leaf, as far as the answer has them. */
    void (*sums)(const json_t *answer, uint64_t *total, uint64_t *leaf);
} AskRow;

struct GatewayAsk {
    GatewayAskOptions options;
    const AskRow *row;
    LoopSource *timer;
    TransportRequest *request;
    Buffer url, body;
    unsigned times;
    char tenant[GATEWAY_TEXT_MAX * 2];
    const char *headers[2];
};

/* Another host may test at the same time. A name that would need quotes is not asked for. */
static bool gateway_ask_knows_host(const GatewayAsk *ask) {
    const char *host = ask->options.host;

    return !host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")];
}

static void gateway_ask_pyroscope(const GatewayAsk *ask, Buffer *path, Buffer *body) {
    text_puts(path, "/querier.v1.QuerierService/SelectMergeStacktraces");
    text_puts(body, "{\"profileTypeID\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\","
                    "\"labelSelector\":\"{service_name=\\\"profd-golden\\\"");
    if (gateway_ask_knows_host(ask))
        text_printf(body, ",host=\\\"%s\\\"", ask->options.host);
    text_printf(body, "}\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 "}",
                (uint64_t)(ask->options.since_ns / NS_PER_MS - 1000),
                (uint64_t)(ask->options.until_ns / NS_PER_MS + 1000));
}

static uint64_t gateway_ask_number(const json_t *value) {
    const char *text = json_string_value(value);

    return text ? strtoull(text, NULL, 10) : (uint64_t)json_integer_value(value);
}

/* Nothing takes longer by itself than leaf. */
static void gateway_ask_sum_pyroscope(const json_t *answer, uint64_t *total, uint64_t *leaf) {
    const json_t *graph = json_object_get(answer, "flamegraph");

    *total = gateway_ask_number(json_object_get(graph, "total"));
    *leaf = gateway_ask_number(json_object_get(graph, "maxSelf"));
}

static void gateway_ask_put_time(Buffer *out, uint64_t ns) {
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    char text[32];
    struct tm tm;

    (void)gmtime_r(&seconds, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H%%3A%M%%3A%SZ", &tm);
    text_puts(out, text);
}

static void gateway_ask_parca(const GatewayAsk *ask, Buffer *path, Buffer *body _unused_) {
    text_puts(path, "/api/profiles/query?mode=MODE_MERGE&report_type=REPORT_TYPE_TOP&merge.query="
                    "process_cpu%3Acpu%3Ananoseconds%3Acpu%3Ananoseconds%3Adelta%7B"
                    "service_name%3D%22profd-golden%22");
    if (gateway_ask_knows_host(ask))
        text_printf(path, "%%2Chost%%3D%%22%s%%22", ask->options.host);
    text_puts(path, "%7D&merge.start=");
    gateway_ask_put_time(path, ask->options.since_ns - NS_PER_SECOND);
    text_puts(path, "&merge.end=");
    gateway_ask_put_time(path, ask->options.until_ns + NS_PER_SECOND);
}

static void gateway_ask_sum_parca(const json_t *answer, uint64_t *total, uint64_t *leaf) {
    const json_t *list = json_object_get(json_object_get(answer, "top"), "list"), *row;
    size_t i;

    json_array_foreach(list, i, row) {
        const json_t *function = json_object_get(json_object_get(row, "meta"), "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        uint64_t flat = gateway_ask_number(json_object_get(row, "flat"));

        *total += flat;
        if (name && strcmp(name, "leaf") == 0)
            *leaf = flat;
    }
}

/* clang-format off */
static const AskRow rows[] = {
    { "pyroscope", "POST", "application/json", gateway_ask_pyroscope, gateway_ask_sum_pyroscope },
    { "parca",     "GET",  NULL,               gateway_ask_parca,     gateway_ask_sum_parca     },
};
/* clang-format on */

GatewayAsk *gateway_ask_cancel(GatewayAsk *ask) {
    if (!ask)
        return NULL;
    transport_cancel(ask->request);
    loop_source_free(ask->timer);
    buffer_done(&ask->url);
    buffer_done(&ask->body);
    free(ask);
    return NULL;
}

static void gateway_ask_give_up(GatewayAsk *ask, const TransportAnswer *answer) {
    char sentence[512];

    if (answer->error < 0)
        (void)snprintf(sentence, sizeof(sentence), "it cannot be asked for it: %s",
                       *answer->problem ? answer->problem : strerror(-answer->error));
    else
        (void)snprintf(sentence, sizeof(sentence),
                       "it does not give it back as it was sent: it last answered with status %ld",
                       answer->status);
    ask->options.done(ask->options.userdata, -EBADMSG, sentence);
}

/* Whether the answer has the profile as it was sent. */
static bool gateway_ask_is_golden(const GatewayAsk *ask, const TransportAnswer *answer) {
    _cleanup_json_ json_t *json = NULL;
    uint64_t total = 0, leaf = 0;

    if (answer->error < 0 || answer->status != 200)
        return false;
    json = json_loadb((const char *)answer->data, answer->size, 0, NULL);
    ask->row->sums(json, &total, &leaf);
    return total == GOLDEN_TOTAL_NS && leaf == GOLDEN_LEAF_NS;
}

static void gateway_ask_on_answer(void *userdata, const TransportAnswer *answer) {
    GatewayAsk *ask = userdata;

    ask->request = NULL;
    if (gateway_ask_is_golden(ask, answer))
        ask->options.done(ask->options.userdata, 0,
                          "The engine gives them back: 505050500 ns, of which 404040400 in leaf.");
    else if (ask->times == ASK_TIMES)
        gateway_ask_give_up(ask, answer);
    else if (loop_trigger_after(ask->timer, ASK_EVERY_NS) < 0)
        ask->options.done(ask->options.userdata, -ENOMEM, "there is no memory to ask for it");
}

static int gateway_ask_on_timer(void *userdata) {
    GatewayAsk *ask = userdata;

    ask->times++;
    return transport_send(ask->options.transport,
                          &(TransportOptions){.config = ask->options.config,
                                              .method = ask->row->method,
                                              .url = (const char *)ask->url.data,
                                              .content_type = ask->row->content_type,
                                              .headers = ask->headers,
                                              .body = ask->body.data,
                                              .size = ask->body.size,
                                              .done = gateway_ask_on_answer,
                                              .userdata = ask},
                          &ask->request);
}

/* The scheme and host of the URL: the path behind it is that of the push API. */
static void gateway_ask_put_host(Buffer *out, const char *url) {
    const char *host = strstr(url, "://");
    size_t n = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/") : strlen(url);

    buffer_append(out, url, n);
}

static int gateway_ask_prepare(GatewayAsk *ask) {
    const SendConfig *config = ask->options.config;

    gateway_ask_put_host(&ask->url, config->url);
    ask->row->request(ask, &ask->url, &ask->body);
    text_putc(&ask->url, '\0');
    if (*config->tenant) {
        (void)snprintf(ask->tenant, sizeof(ask->tenant), "X-Scope-OrgID: %s", config->tenant);
        ask->headers[0] = ask->tenant;
    }
    return buffer_error(&ask->url) ? buffer_error(&ask->url) : buffer_error(&ask->body);
}

int gateway_ask_start(const GatewayAskOptions *options, GatewayAsk **ret) {
    GatewayAsk *ask;
    size_t i = 0;
    int r;

    while (i < ARRAY_SIZE(rows) && strcmp(rows[i].type, options->config->type) != 0)
        i++;
    if (i == ARRAY_SIZE(rows))
        return -EOPNOTSUPP;
    ask = calloc(1, sizeof(*ask));
    if (!ask)
        return -ENOMEM;
    ask->options = *options;
    ask->row = &rows[i];
    r = gateway_ask_prepare(ask);
    if (r == 0)
        r = loop_add_deferred(options->loop, gateway_ask_on_timer, ask, &ask->timer);
    if (r == 0)
        r = loop_trigger(ask->timer);
    if (r < 0)
        gateway_ask_cancel(ask);
    else
        *ret = ask;
    return r;
}
