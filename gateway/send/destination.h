/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sends intervals to one engine. Live intervals go at once; what could not be sent is remembered as
 * a range of time, in a file, and read from profd again: neither memory nor disk holds unsent
 * samples. A destination waits for its own engine only.
 */

#include "config/gateway-config.h"
#include "engine/engine.h"
#include "loop/loop.h"
#include "transport/transport.h"
#include "source/source.h"

typedef struct Destination Destination;

typedef struct DestinationOptions {
    const SendConfig *config;     /* borrowed */
    const GatewayConfig *gateway; /* its host, interval and rules; borrowed */
    const char *state_folder;
    Loop *loop;
    Transport *transport;
    Source *source;
    uint64_t window_pause_ns; /* before profd is asked for a window again; 0: 5 s */
} DestinationOptions;

int destination_new(const DestinationOptions *options, Destination **ret);
/* Writes its state; requests in flight are given up, and are sent again at the next start. */
Destination *destination_free(Destination *destination);
DEFINE_CLEANUP(Destination *, destination_free);
/* A live interval. */
void destination_offer(Destination *destination, Interval *interval);

/* Counters are since the state was made, also over restarts. */
typedef struct DestinationStatus {
    const char *name, *type;
    uint64_t live_until_ns; /* what is older was sent, refused, or is in the backlog; 0: nothing */
    uint64_t newest_ns;     /* end of the newest that is not to be sent any more; 0: nothing yet */
    uint64_t backlog_ns, backlog_since_ns; /* how much is not sent yet, and its oldest */
    size_t ranges;
    uint64_t last_success_ns; /* 0: never */
    uint64_t sent_intervals, sent_requests, sent_bytes, sent_samples;
    uint64_t refused_intervals, refused_samples; /* by the engine, for good */
    uint64_t dropped_samples;                    /* by rules */
    uint64_t other_samples; /* sent as "other": more series, values or stacks than are allowed */
    uint64_t thinned_intervals; /* beyond the share of this host */
    uint64_t expired_ns;        /* too old for the engine, or the list of ranges was full; no
                                 * sleep of the machine that profd told of */
    uint64_t missing_ns;        /* profd has nothing of it: not recorded, or deleted */
    uint64_t deleted_ns;        /* of that, what profd deleted before it was sent */
    uint64_t repeated_requests; /* may have arrived twice */
    uint64_t retries;
    bool is_waiting;       /* backs off, until retry_ns */
    uint64_t retry_ns;     /* CLOCK_REALTIME */
    long last_http_status; /* 0: none */
    long error_status;     /* of last_error: of HTTP or SEND_STATUS_… */
    char last_error[256];  /* a sentence; "": none */
    uint64_t last_error_ns;
} DestinationStatus;
void destination_status(const Destination *destination, DestinationStatus *ret);
