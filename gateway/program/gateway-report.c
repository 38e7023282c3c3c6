/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "program/gateway-private.h"
#include "status/status-value.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify-socket.h"
#include "util/text.h"

/*
 * What others see of the gateway: the file that `profctl gateway status` reads, the line of
 * `systemctl status`, and the watchdog, which is fed while the loop runs. An engine or a profd that
 * is away is no reason for a restart.
 */

#define REPORT_EVERY_NS (5 * NS_PER_SECOND)

void gateway_status(Gateway *gateway, GatewayStatus *ret) {
    ListenCounts counts = {};

    *ret = (GatewayStatus){.start_ns = gateway->start_ns,
                           .interval_ns = gateway->config->interval_ns,
                           .host = gateway->config->host,
                           .config_problems = gateway->problems,
                           .is_outdated = gateway->is_outdated,
                           .n_sends = gateway->n_slots};
    status_measure(ret);
    source_status(gateway->source, &ret->source);
    for (size_t i = 0; i < gateway->n_slots; i++)
        gateway_slot_status(&gateway->slots[i], &ret->sends[i]);
    if (gateway->listen)
        listen_counts(gateway->listen, &counts);
    ret->scrapes = counts.scrapes;
    ret->refused_clients = counts.refused_clients;
}

static void gateway_report_line(const GatewayStatus *status, Buffer *line) {
    size_t up = 0;

    for (size_t i = 0; i < status->n_sends; i++)
        up += status_send_is_up(&status->sends[i]);
    text_printf(line, "STATUS=%s; %zu of %zu destination%s up",
                status->source.connected ? "Follows profd"
                : status->source.hangs   ? "Reading from profd hangs"
                                         : "profd is away",
                up, status->n_sends, status->n_sends == 1 ? "" : "s");
    for (size_t i = 0; i < status->n_sends; i++)
        if (status->sends[i].backlog_ns > 0)
            text_printf(line, "; %s is %" PRIu64 " s behind", status->sends[i].name,
                        (uint64_t)(status_send_lag_ns(status, &status->sends[i]) / NS_PER_SECOND));
    if (status->is_outdated)
        text_puts(line, "; the last reload was refused");
    text_putc(line, '\0');
}

/* Only changes are logged. */
static void gateway_report_source(Gateway *gateway, const SourceStatus *source) {
    if (source->connected && !gateway->was_connected)
        log_struct(LOG_LEVEL_INFO, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-source-back"}),
                   "Following session '%s' of profd", gateway->config->session);
    if (!source->connected && gateway->was_connected)
        log_struct(LOG_LEVEL_WARNING, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-source-lost"}),
                   "profd cannot be followed, trying again; what it records meanwhile is read "
                   "later: %s",
                   source->problem);
    gateway->was_connected = source->connected;
}

void gateway_report(Gateway *gateway) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};
    _cleanup_(buffer_done) Buffer line = {};
    _cleanup_free_ GatewayStatus *status = malloc(sizeof(*status));
    int r;

    if (!status)
        return;
    gateway_status(gateway, status);
    gateway_report_source(gateway, &status->source);
    r = status_write(status, gateway->options.runtime);
    if (r < 0)
        log_limited(&rate, LOG_LEVEL_WARNING, r, "Failed to write '%s/" STATUS_FILE "': %m",
                    gateway->options.runtime);
    gateway_report_line(status, &line);
    if (buffer_error(&line) == 0)
        notify_socket_send((const char *)line.data, 0);
}

static int gateway_report_on_timer(void *userdata) {
    gateway_report(userdata);
    return 0;
}

static int gateway_report_on_watchdog(void *userdata _unused_) {
    notify_socket_send("WATCHDOG=1", 0);
    return 0;
}

int gateway_begin_report(Gateway *gateway) {
    uint64_t watchdog_ns = notify_socket_watchdog_ns();
    int r = loop_add_timer(gateway->loop, MIN(gateway->config->interval_ns, REPORT_EVERY_NS),
                           gateway_report_on_timer, gateway, &gateway->status_timer);

    if (r == 0 && watchdog_ns > 0)
        r = loop_add_timer(gateway->loop, watchdog_ns / 2, gateway_report_on_watchdog, gateway,
                           &gateway->watchdog_timer);
    return r < 0 ? log_error(r, "Failed to set up the main loop: %m") : 0;
}
