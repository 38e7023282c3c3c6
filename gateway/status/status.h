/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state of the whole gateway, as JSON and as metrics of Prometheus. */

#include "config/gateway-config.h"
#include "send/destination.h"
#include "source/source.h"
#include "util/buffer.h"

typedef struct GatewayStatus {
    uint64_t start_ns, now_ns; /* CLOCK_REALTIME */
    uint64_t cpu_ns, resident_bytes;
    uint64_t anonymous_bytes; /* of them, those that no file has */
    uint64_t interval_ns;
    const char *host;         /* the label; borrowed, NULL: "" */
    unsigned config_problems; /* of the configuration that is in use */
    bool is_outdated;         /* the last reload was refused */
    SourceStatus source;
    DestinationStatus sends[GATEWAY_SENDS_MAX];
    size_t n_sends;
    uint64_t scrapes, refused_clients; /* of the listener */
} GatewayStatus;

/* Fills in what belongs to this process: the times, its CPU time and its memory. */
void status_measure(GatewayStatus *status);
/* One object, with the members of doc/schema/gateway.json. */
void status_json(const GatewayStatus *status, Buffer *out);
/* In the text format 0.0.4. */
void status_metrics(const GatewayStatus *status, Buffer *out);

#define STATUS_FILE "status.json"
/* Replaces STATUS_FILE in the folder, which is no disk, so that readers see the old or the new
 * one. */
int status_write(const GatewayStatus *status, const char *folder);
void status_remove(const char *folder);
