/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Asks an engine for the profile that engine_golden() makes, by the engine's own API. */

#include "config/gateway-config.h"
#include "loop/loop.h"
#include "transport/transport.h"

typedef struct GatewayAsk GatewayAsk;

typedef struct GatewayAskOptions {
    const SendConfig *config;
    const char *host; /* the label */
    uint64_t since_ns, until_ns;
    Loop *loop;
    Transport *transport;
    /* 0 with a sentence for people, or a negative errno with a part of one. Not called from within
     * gateway_ask_start(). */
    void (*done)(void *userdata, int error, const char *sentence);
    void *userdata;
} GatewayAskOptions;

/* -EOPNOTSUPP: there is no way to ask an engine of this type. */
int gateway_ask_start(const GatewayAskOptions *options, GatewayAsk **ret);
/* `done` is not called any more. Accepts NULL. */
GatewayAsk *gateway_ask_cancel(GatewayAsk *ask);
