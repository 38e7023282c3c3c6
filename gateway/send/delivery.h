/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sends one interval to one engine, in as many requests as the engine's limits make necessary. Each
 * callback is called on the loop's thread, never from within delivery_new().
 */

#include "config/gateway-config.h"
#include "engine/engine.h"
#include "loop/loop.h"
#include "send/disk-worker.h"
#include "transport/retry.h"
#include "send/send-state.h"
#include "transport/transport.h"

typedef struct Delivery Delivery;

/* How a destination sends; the same for all of its intervals. */
typedef struct DeliverySettings {
    const SendConfig *config; /* borrowed, as everything here */
    const Engine *engine;
    Transport *transport;
    Loop *loop;
    DiskWorker *worker; /* writes files, of an engine that is a folder */
    const char *url;
    const char *const *headers;
    SeriesOptions series;
    double weight;
    SendCounters *counters;
    size_t max_bytes; /* of a request; SEND_TOO_LARGE makes it smaller. 0: no limit */
} DeliverySettings;

/* How it ended. Only SEND_ACCEPTED (although requests of it may have been refused), SEND_REFUSED
 * and verdicts that ask for another attempt. */
typedef struct DeliveryResult {
    SendVerdict verdict;
    bool is_refused; /* at least one request */
    size_t requests; /* accepted ones */
    uint64_t bytes;  /* sent now, before compression */
    uint64_t retry_after_ns;
    SendPartial partial; /* n > 0: the next attempt goes on here */
} DeliveryResult;

typedef struct DeliveryProblem {
    SendVerdict verdict;
    bool is_loss;
    long status; /* of HTTP; 0: no answer; SEND_STATUS_LOCAL or _LOST: no engine was asked */
    const char *sentence;
} DeliveryProblem;

typedef struct DeliveryEvents {
    /* One more request is in flight (1), or one was answered (-1), before its other events. */
    void (*on_flight)(void *userdata, int change);
    /* A request was accepted, and more follow. */
    void (*on_progress)(void *userdata, const SendPartial *partial);
    /* A request failed, was refused in part, or, with SEND_ACCEPTED, brought a warning. Before
     * on_done() where that is the end. */
    void (*on_problem)(void *userdata, const DeliveryProblem *problem);
    /* The delivery is over; free it. */
    void (*on_done)(void *userdata, Delivery *delivery, const DeliveryResult *result);
    void *userdata;
} DeliveryEvents;

typedef struct DeliveryPlan {
    Interval *interval;
    const SendPartial *partial; /* what was sent before; NULL: nothing */
    uint64_t delay_ns;          /* begin so much later */
} DeliveryPlan;

/* Settings and events are borrowed. */
int delivery_new(DeliverySettings *settings, const DeliveryEvents *events, const DeliveryPlan *plan,
                 Delivery **ret);
/* Gives up a request in flight. */
Delivery *delivery_free(Delivery *delivery);
DEFINE_CLEANUP(Delivery *, delivery_free);
Range delivery_range(const Delivery *delivery);
/* Whether it has used its delay. */
bool delivery_has_begun(const Delivery *delivery);
uint64_t delivery_missing_ns(const Delivery *delivery);
uint64_t delivery_deleted_ns(const Delivery *delivery);
