/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-private.h"
#include "util/log.h"

/*
 * The parts of the gateway: what is followed, where it is sent, and the listener. Live intervals go
 * to all destinations at once; none of them waits for another one. The listener and destinations
 * read windows through the source, so it is made first and freed last.
 */

static void gateway_part_on_interval(void *userdata, Interval *interval) {
    Gateway *gateway = userdata;

    for (size_t i = 0; i < gateway->n_slots; i++)
        gateway_slot_offer(&gateway->slots[i], interval);
}

static void gateway_part_on_status(void *userdata, GatewayStatus *ret) {
    gateway_status(userdata, ret);
}

int gateway_begin_source(Gateway *gateway) {
    const GatewayConfig *config = gateway->config;
    const SourceOptions options = {.socket = *config->socket ? config->socket : NULL,
                                   .session = config->session,
                                   .interval_ns = config->interval_ns,
                                   .inlines = config->inlines,
                                   .cache_folder = *gateway->cache ? gateway->cache : NULL,
                                   .loop = gateway->loop,
                                   .on_interval = gateway_part_on_interval,
                                   .userdata = gateway};
    int r = source_new(&options, &gateway->source);

    if (r < 0)
        return log_error(r, "Failed to set up reading from profd: %m");
    gateway->source_config = gateway_config_ref(gateway->config);
    return 0;
}

int gateway_add_slot(Gateway *gateway, const char *name) {
    const GatewaySlotOptions options = {.config = gateway->config,
                                        .name = name,
                                        .state_folder = gateway->options.state,
                                        .loop = gateway->loop,
                                        .transport = gateway->transport,
                                        .source = gateway->source};
    int r = gateway_slot_begin(&gateway->slots[gateway->n_slots], &options);

    if (r < 0)
        return log_struct(
            LOG_LEVEL_ERROR, r,
            LOG_FIELDS({"PROFD_EVENT", "gateway-destination-failed"}, {"PROFD_DESTINATION", name}),
            "Failed to set up destination '%s', going on without it: %m", name);
    gateway->n_slots++;
    return 0;
}

int gateway_load_secret(const GatewayConfig *config, ListenSecret **ret) {
    const char *problem;
    int r = listen_secret_load(config, ret, &problem);

    return r < 0 ? log_error(r, "Failed to listen for HTTP: %s", problem) : 0;
}

int gateway_begin_listen(Gateway *gateway) {
    const ListenOptions options = {.config = gateway->config,
                                   .secret = gateway->listen_secret,
                                   .loop = gateway->loop,
                                   .source = gateway->source,
                                   .status = gateway_part_on_status,
                                   .userdata = gateway};
    const char *problem = NULL;
    int r = 0;

    if (*gateway->config->listen_socket || *gateway->config->listen_address)
        r = listen_new(&options, &gateway->listen, &problem);
    if (r < 0 && problem)
        return log_error(r, "Failed to listen for HTTP: %s", problem);
    if (r < 0)
        return log_error(r, "Failed to listen for HTTP at '%s': %m",
                         *gateway->config->listen_address ? gateway->config->listen_address
                                                          : gateway->config->listen_socket);
    gateway->listen_config = gateway_config_ref(gateway->config);
    return 0;
}

void gateway_end_listen(Gateway *gateway) {
    gateway->listen = listen_free(gateway->listen);
    gateway->listen_config = gateway_config_free(gateway->listen_config);
}

int gateway_begin(Gateway *gateway) {
    int r = gateway_begin_source(gateway);

    /* A destination that cannot be set up must not keep the others from their samples. */
    for (size_t i = 0; r == 0 && i < gateway->config->n_sends; i++)
        if (gateway_add_slot(gateway, gateway->config->sends[i].name) < 0)
            gateway->problems++;
    if (r == 0)
        r = gateway_begin_listen(gateway);
    if (r == 0)
        r = gateway_begin_report(gateway);
    if (r < 0)
        return r;
    r = source_start(gateway->source);
    return r < 0 ? log_error(r, "Failed to start reading from profd: %m") : 0;
}

void gateway_end(Gateway *gateway) {
    gateway_end_listen(gateway);
    for (size_t i = 0; i < gateway->n_slots; i++)
        gateway_slot_end(&gateway->slots[i]);
    gateway->n_slots = 0;
    /* A thread that hangs still reads the configuration. */
    if (source_end(gateway->source))
        (void)gateway_config_free(gateway->source_config);
    gateway->source = NULL;
    gateway->source_config = NULL;
    gateway->status_timer = loop_source_free(gateway->status_timer);
    gateway->watchdog_timer = loop_source_free(gateway->watchdog_timer);
}
