/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state of the whole gateway, as JSON and as metrics of Prometheus. */

#include <jansson.h>

#include "config/gateway-config.h"
#include "send/destination.h"
#include "source/source.h"
#include "util/buffer.h"

typedef struct GatewayStatus {
    uint64_t start_ns, now_ns; /* CLOCK_REALTIME */
    uint64_t cpu_ns, resident_bytes;
    uint64_t interval_ns;
    SourceStatus source;
    DestinationStatus sends[GATEWAY_SENDS_MAX];
    size_t n_sends;
    uint64_t scrapes, refused_clients; /* of the listener */
} GatewayStatus;

/* NULL without memory. */
json_t *status_json(const GatewayStatus *status);
/* In the text format 0.0.4. */
void status_metrics(const GatewayStatus *status, Buffer *out);
