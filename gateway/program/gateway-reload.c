/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "program/gateway-private.h"
#include "program/gateway-read.h"
#include "util/log.h"

/*
 * A reload. The new configuration is read and checked as a whole first; with any problem nothing
 * changes; the files of token and certificate belong to it. Destinations of which nothing changed
 * go on, with their requests in flight. If what is followed changes, everything is made anew:
 * positions are on disk, so nothing is lost.
 */

static int gateway_reload_refuse(int error, int problems) {
    if (problems > 0)
        return log_struct(LOG_LEVEL_ERROR, -EINVAL,
                          LOG_FIELDS({"PROFD_EVENT", "gateway-reload-refused"}),
                          "The configuration has %d problem%s, keeping the old one", problems,
                          problems == 1 ? "" : "s");
    return log_struct(LOG_LEVEL_ERROR, error, LOG_FIELDS({"PROFD_EVENT", "gateway-reload-refused"}),
                      "Failed to take the new configuration, keeping the old one: %m");
}

static void gateway_reload_remove_slots(Gateway *gateway, const GatewayConfig *new) {
    size_t kept = 0;

    for (size_t i = 0; i < gateway->n_slots; i++) {
        GatewaySlot slot = gateway->slots[i];
        DestinationStatus status;

        gateway_slot_status(&slot, &status);
        if (gateway_config_same_send(slot.config, new, status.name))
            gateway->slots[kept++] = slot;
        else
            gateway_slot_end(&slot);
    }
    memset(&gateway->slots[kept], 0, (gateway->n_slots - kept) * sizeof(gateway->slots[0]));
    gateway->n_slots = kept;
}

static bool gateway_reload_has_slot(const Gateway *gateway, const char *name) {
    for (size_t i = 0; i < gateway->n_slots; i++) {
        DestinationStatus status;

        gateway_slot_status(&gateway->slots[i], &status);
        if (strcmp(status.name, name) == 0)
            return true;
    }
    return false;
}

static void gateway_reload_add_slots(Gateway *gateway) {
    for (size_t i = 0; i < gateway->config->n_sends; i++)
        if (!gateway_reload_has_slot(gateway, gateway->config->sends[i].name) &&
            gateway_add_slot(gateway, gateway->config->sends[i].name) < 0)
            gateway->problems++;
}

/* What a reload reads before anything changes. */
typedef struct GatewayReload {
    GatewayConfig *config;
    ListenSecret *secret;
} GatewayReload;

static void gateway_reload_done(GatewayReload *reload) {
    reload->config = gateway_config_free(reload->config);
    reload->secret = listen_secret_free(reload->secret);
}

/* Uses what was read from now on, and keeps what was in use in its place. */
static void gateway_reload_swap(Gateway *gateway, GatewayReload *reload) {
    const GatewayReload old = {.config = gateway->config, .secret = gateway->listen_secret};

    gateway->config = reload->config;
    gateway->listen_secret = reload->secret;
    *reload = old;
}

/* Everything anew. When that fails, the old configuration is used again. */
static int gateway_reload_all(Gateway *gateway) {
    gateway_end(gateway);
    return gateway_begin(gateway);
}

/* A listener of which no key changed goes on, with the files of these keys as they are now. */
static int gateway_reload_listen(Gateway *gateway, const GatewayConfig *old) {
    if (gateway_config_same_listen(old, gateway->config)) {
        if (gateway->listen)
            listen_use_secret(gateway->listen, gateway->listen_secret);
        return 0;
    }
    gateway_end_listen(gateway);
    return gateway_begin_listen(gateway);
}

/* gateway->config is the new configuration already. */
static int gateway_reload_apply(Gateway *gateway, const GatewayConfig *old) {
    int r;

    if (!gateway_config_same_source(old, gateway->config))
        return gateway_reload_all(gateway);
    r = gateway_reload_listen(gateway, old);
    if (r < 0)
        return r;
    gateway_reload_remove_slots(gateway, gateway->config);
    gateway_reload_add_slots(gateway);
    return 0;
}

static void gateway_reload_go_back(Gateway *gateway, GatewayReload *old) {
    int r;

    gateway_reload_swap(gateway, old);
    r = gateway_config_same_source(gateway->config, old->config)
            ? gateway_reload_listen(gateway, old->config)
            : gateway_reload_all(gateway);
    if (r < 0)
        gateway_end(gateway);
}

int gateway_reload(Gateway *gateway) {
    _cleanup_(gateway_reload_done) GatewayReload reload = {};
    int r = gateway_read_config(&gateway->options, &reload.config);

    if (r == 0)
        r = gateway_load_secret(reload.config, &reload.secret);
    if (r != 0)
        return gateway_reload_refuse(r, r);
    gateway->problems = 0;
    gateway_reload_swap(gateway, &reload);
    r = gateway_reload_apply(gateway, reload.config);
    if (r < 0) {
        gateway_reload_go_back(gateway, &reload);
        return gateway_reload_refuse(r, 0);
    }
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-reloaded"}),
               "Reloaded the configuration");
    return 0;
}
