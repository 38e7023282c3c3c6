/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/destination.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "send/sender-offer.h"
#include "send/sender.h"
#include "send/state-file.h"
#include "util/clock.h"
#include "util/hash.h"

/*
 * A section of the configuration becomes a sender: the URL, the headers and the rules that concern
 * this destination, and the state that an earlier run left. A state that cannot be understood is
 * set aside, which the log and the status report, because intervals may be lost with it.
 */

/* Where a live interval is sent within the time of the next one: later than that is never. */
#define DESTINATION_SPREAD_PART 2
#define DESTINATION_SEED        UINT64_C(0x3c6ef372)

struct Destination {
    Sender sender;
    char host[GATEWAY_NAME_MAX * 4];
    char url[GATEWAY_TEXT_MAX * 2];
    char tenant[GATEWAY_TEXT_MAX * 2];
    const char *headers[2];
    RelabelRule *rules[GATEWAY_RULES_MAX];
    size_t n_rules;
    bool is_started;
};

Destination *destination_free(Destination *destination) {
    if (!destination)
        return NULL;
    if (destination->is_started)
        sender_stop(&destination->sender);
    free(destination);
    return NULL;
}

static void destination_host(Destination *destination, const GatewayConfig *gateway) {
    size_t size = sizeof(destination->host);

    (void)snprintf(destination->host, size, "%s", gateway->host);
    if (!destination->host[0] && gethostname(destination->host, size - 1) < 0)
        (void)snprintf(destination->host, size, "localhost");
}

/* The path of the engine, unless the URL has one. */
static int destination_url(Destination *destination, const SendConfig *config,
                           const Engine *engine) {
    const char *rest = strstr(config->url, "://");
    const char *path = engine->path ?: "";
    int n, length = (int)strlen(config->url);

    rest = rest ? rest + 3 + strcspn(rest + 3, "/?#") : "";
    if (strcmp(rest, "/") == 0)
        length--;
    else if (*rest)
        path = "";
    n = snprintf(destination->url, sizeof(destination->url), "%.*s%s", length, config->url, path);
    return n < 0 || (size_t)n >= sizeof(destination->url) ? -ENAMETOOLONG : 0;
}

static int destination_tenant(Destination *destination, const SendConfig *config,
                              const Engine *engine) {
    int n;

    if (!config->tenant[0] || !engine->tenant_header)
        return 0;
    n = snprintf(destination->tenant, sizeof(destination->tenant), "%s: %s", engine->tenant_header,
                 config->tenant);
    destination->headers[0] = destination->tenant;
    return n < 0 || (size_t)n >= sizeof(destination->tenant) ? -ENAMETOOLONG : 0;
}

static void destination_rules(Destination *destination, const GatewayConfig *gateway,
                              const char *name) {
    for (size_t i = 0; i < gateway->n_rules; i++)
        if (gateway_rule_is_for(&gateway->rules[i], name))
            destination->rules[destination->n_rules++] = gateway->rules[i].rule;
}

/* Hosts of a fleet end their intervals at the same moment, but do not send at the same one. */
static uint64_t destination_spread(const Destination *destination, const SendConfig *config,
                                   uint64_t interval_ns) {
    const uint8_t *host = (const uint8_t *)destination->host;
    const uint8_t *name = (const uint8_t *)config->name;
    uint64_t h = hash_bytes(DESTINATION_SEED, (Bytes){host, strlen(destination->host)});

    h = hash_bytes(h, (Bytes){name, strlen(config->name)});
    return h % (interval_ns / DESTINATION_SPREAD_PART + 1);
}

static void destination_fill(Destination *destination, const DestinationOptions *options,
                             const Engine *engine) {
    const SendConfig *config = options->config;
    uint32_t share = config->share_percent > 0 ? MIN(config->share_percent, 100U) : 100;
    Sender *sender = &destination->sender;

    sender->config = config;
    sender->state_folder = options->state_folder;
    sender->source = options->source;
    sender->window_pause_ns = options->window_pause_ns;
    sender->rules = (BacklogRules){
        .interval_ns = options->gateway->interval_ns,
        .max_age_ns = config->max_age_ns > 0 ? config->max_age_ns : engine->max_age_ns,
        .host = destination->host,
        .share_percent = share,
    };
    if (engine->path)
        sender->spread_ns = destination_spread(destination, config, options->gateway->interval_ns);
    sender->settings = (DeliverySettings){
        .config = config,
        .engine = engine,
        .transport = options->transport,
        .loop = options->loop,
        .url = destination->url,
        .headers = destination->headers,
        .series = {.host = destination->host,
                   .rules = destination->rules,
                   .n_rules = destination->n_rules,
                   .max_series = config->max_series,
                   .max_values = config->max_label_values},
        .weight = 100.0 / share,
        .max_bytes = config->max_body_bytes > 0 ? config->max_body_bytes : engine->max_bytes,
    };
}

static int destination_load(Sender *sender) {
    const char *name = sender->config->name, *problem = "";
    char sentence[512];
    int r = state_file_load(sender->state_folder, name, &sender->state, &problem);

    if (r == -ENOENT)
        return 0;
    if (r != -EBADMSG)
        return r < 0 ? log_error(r, "Failed to read the state of destination '%s' in '%s': %m",
                                 name, sender->state_folder)
                     : 0;
    (void)snprintf(
        sentence, sizeof(sentence),
        "The state of destination '%s' is damaged (%s), so it starts afresh and what was "
        "not sent before is lost; the file is kept as '%s.json.damaged'",
        name, problem, name);
    log_struct(LOG_LEVEL_WARNING, 0,
               LOG_FIELDS({"PROFD_EVENT", "gateway-state-damaged"}, {"PROFD_DESTINATION", name}),
               "%s", sentence);
    sender_keep_error(sender, sentence);
    sender->error_status = SEND_STATUS_LOST;
    return 0;
}

int destination_new(const DestinationOptions *options, Destination **ret) {
    _cleanup_(destination_freep) Destination *destination = calloc(1, sizeof(*destination));
    const SendConfig *config = options->config;
    const Engine *engine = engine_by_name(config->type);
    int r;

    if (!destination)
        return -ENOMEM;
    if (!engine || !engine->encode || !state_file_is_name(config->name) ||
        options->gateway->interval_ns == 0)
        return -EINVAL;
    destination_host(destination, options->gateway);
    destination_rules(destination, options->gateway, config->name);
    r = destination_url(destination, config, engine);
    if (r == 0)
        r = destination_tenant(destination, config, engine);
    if (r < 0)
        return r;
    destination_fill(destination, options, engine);
    r = destination_load(&destination->sender);
    if (r < 0)
        return r;
    destination->is_started = true;
    r = sender_start(&destination->sender);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(destination);
    return 0;
}

void destination_offer(Destination *destination, Interval *interval) {
    sender_offer(&destination->sender, interval);
}

static void destination_counters(const SendCounters *counters, DestinationStatus *ret) {
    ret->sent_intervals = counters->sent_intervals;
    ret->sent_requests = counters->sent_requests;
    ret->sent_bytes = counters->sent_bytes;
    ret->sent_samples = counters->sent_samples;
    ret->refused_intervals = counters->refused_intervals;
    ret->refused_samples = counters->refused_samples;
    ret->dropped_samples = counters->dropped_samples;
    ret->other_samples = counters->other_samples;
    ret->thinned_intervals = counters->thinned_intervals;
    ret->expired_ns = counters->expired_ns;
    ret->missing_ns = counters->missing_ns;
    ret->deleted_ns = counters->deleted_ns;
    ret->repeated_requests = counters->repeated_requests;
    ret->retries = counters->retries;
}

void destination_status(const Destination *destination, DestinationStatus *ret) {
    const Sender *sender = &destination->sender;
    const SendState *state = &sender->state;
    uint64_t now_ns = clock_monotonic_ns();

    *ret = (DestinationStatus){
        .name = sender->config->name,
        .type = sender->config->type,
        .live_until_ns = state->live_ns,
        .newest_ns = sender->newest_ns,
        .backlog_ns = range_list_total(&state->unsent),
        .backlog_since_ns = state->unsent.n > 0 ? state->unsent.items[0].since_ns : 0,
        .ranges = state->unsent.n,
        .last_success_ns = state->last_success_ns,
        .is_waiting = sender_is_waiting(sender),
        .last_http_status = sender->last_status,
        .error_status = sender->error_status,
        .last_error_ns = sender->last_error_ns,
    };
    if (ret->is_waiting)
        ret->retry_ns = clock_ns(CLOCK_REALTIME) + (sender->wait_ns - now_ns);
    destination_counters(&state->counters, ret);
    (void)snprintf(ret->last_error, sizeof(ret->last_error), "%s", sender->last_error);
}
