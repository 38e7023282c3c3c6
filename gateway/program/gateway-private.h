/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the running gateway share. */

#include "listen/listen.h"
#include "loop/loop.h"
#include "program/gateway-option.h"
#include "program/gateway-slot.h"
#include "transport/transport.h"
#include "source/source.h"
#include "status/status.h"

typedef struct Gateway {
    GatewayOptions options;
    int lock_fd;
    char cache[4096]; /* the folder of tables of symbols; "": none */
    Loop *loop;
    GatewayConfig *config;
    /* From which the source and the listener borrow: older ones where a reload left them alone. */
    GatewayConfig *source_config, *listen_config;
    Transport *transport;
    Source *source;
    GatewaySlot slots[GATEWAY_SENDS_MAX];
    size_t n_slots;
    Listen *listen;
    ListenSecret *listen_secret; /* of `config` */
    LoopSource *status_timer, *watchdog_timer;
    uint64_t start_ns;
    unsigned problems;
    bool is_outdated, was_connected;
} Gateway;

/* In gateway-part.c: makes all parts of gateway->config and starts them; ends them. */
int gateway_begin(Gateway *gateway);
void gateway_end(Gateway *gateway);
/* The parts one by one, for a reload. Failures are logged. */
int gateway_load_secret(const GatewayConfig *config, ListenSecret **ret);
int gateway_begin_source(Gateway *gateway);
int gateway_begin_listen(Gateway *gateway);
void gateway_end_listen(Gateway *gateway);
int gateway_add_slot(Gateway *gateway, const char *name);

/* In gateway-reload.c: reads the configuration again. A negative errno: it was refused and logged,
 * and nothing has changed. */
int gateway_reload(Gateway *gateway);

/* In gateway-report.c: the state of the whole program. */
void gateway_status(Gateway *gateway, GatewayStatus *ret);
/* Writes the state where others look, and feeds the watchdog regularly. */
int gateway_begin_report(Gateway *gateway);
void gateway_report(Gateway *gateway);
