/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "program/gateway-private.h"
#include "program/gateway-read.h"
#include "util/log.h"

/*
 * A reload. The new configuration is read and checked as a whole first; with any problem nothing
 * changes. Destinations of which nothing changed go on, with their requests in flight. If what is
 * followed changes, everything is made anew: positions are on disk, so nothing is lost.
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

/* Uses `new` from now on; returns the configuration that was in use. */
static GatewayConfig *gateway_reload_swap(Gateway *gateway, GatewayConfig *new) {
    GatewayConfig *old = gateway->config;

    gateway->config = new;
    return old;
}

/* Everything anew. When that fails, the old configuration is used again. */
static int gateway_reload_all(Gateway *gateway) {
    gateway_end(gateway);
    return gateway_begin(gateway);
}

static int gateway_reload_listen(Gateway *gateway) {
    gateway_end_listen(gateway);
    return gateway_begin_listen(gateway);
}

/* gateway->config is the new configuration already. */
static int gateway_reload_apply(Gateway *gateway, const GatewayConfig *old) {
    int r = 0;

    if (!gateway_config_same_source(old, gateway->config))
        return gateway_reload_all(gateway);
    if (!gateway_config_same_listen(old, gateway->config))
        r = gateway_reload_listen(gateway);
    if (r < 0)
        return r;
    gateway_reload_remove_slots(gateway, gateway->config);
    gateway_reload_add_slots(gateway);
    return 0;
}

static void gateway_reload_go_back(Gateway *gateway, GatewayConfig *old) {
    GatewayConfig *new = gateway_reload_swap(gateway, old);
    int r = gateway_config_same_source(old, new) ? gateway_reload_listen(gateway)
                                                 : gateway_reload_all(gateway);

    gateway_config_free(new);
    if (r < 0)
        gateway_end(gateway);
}

int gateway_reload(Gateway *gateway) {
    GatewayConfig *old, *new = NULL;
    int r = gateway_read_config(&gateway->options, &new);

    if (r != 0) {
        gateway_config_free(new);
        return gateway_reload_refuse(r, r);
    }
    gateway->problems = 0;
    old = gateway_reload_swap(gateway, new);
    r = gateway_reload_apply(gateway, old);
    if (r < 0) {
        gateway_reload_go_back(gateway, old);
        return gateway_reload_refuse(r, 0);
    }
    gateway_config_free(old);
    log_struct(LOG_LEVEL_NOTICE, 0, LOG_FIELDS({"PROFD_EVENT", "gateway-reloaded"}),
               "Reloaded the configuration");
    return 0;
}
