/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender-delivery.h"

#include <sys/random.h>

#include "util/clock.h"

/* Begins deliveries, and takes what comes of them: progress, refusals, waits, the end. */

static uint64_t sender_random(void) {
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
        random = clock_monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
    return random;
}

/* Failures of requests that were in flight together count once. */
static void sender_wait(Sender *sender, const DeliveryResult *result) {
    uint64_t delay;

    sender->state.counters.retries++;
    if (!sender_is_waiting(sender))
        sender->failures++;
    delay = retry_delay_ns(sender->failures, result->verdict, result->retry_after_ns,
                           sender->rules.interval_ns, sender_random());
    sender->wait_ns = MAX(sender->wait_ns, clock_monotonic_ns() + delay);
    if (result->verdict == SEND_BUSY)
        sender->merge = MIN(sender->merge * 2, (unsigned)BACKLOG_MERGE_MAX);
}

static void sender_succeed(Sender *sender) {
    if (sender->failures > 0)
        log_struct(LOG_LEVEL_INFO, 0,
                   LOG_FIELDS({"PROFD_EVENT", "gateway-destination-back"}, sender_field(sender)),
                   "Destination '%s' accepts profiles again", sender->config->name);
    sender->failures = 0;
    sender->wait_ns = 0;
    sender->last_status = 200;
    sender->state.last_success_ns = clock_ns(CLOCK_REALTIME);
}

/* The rate of the backlog is that of bodies before compression, which is what engines count. */
static void sender_pace(Sender *sender, uint64_t bytes) {
    uint64_t rate = sender->config->max_bytes_per_sec;

    if (rate > 0)
        sender->backlog_ns =
            clock_monotonic_ns() + (uint64_t)MIN((unsigned __int128)bytes * NS_PER_SECOND / rate,
                                                 (unsigned __int128)RETRY_AFTER_MAX_NS);
}

static void sender_count(Sender *sender, const DeliveryResult *result) {
    SendCounters *counters = &sender->state.counters;

    if (result->requests > 0)
        counters->sent_intervals++;
    if (result->is_refused)
        counters->refused_intervals++;
}

static void sender_forget(Sender *sender, const Delivery *delivery) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i] == delivery)
            sender->live[i] = NULL;
    if (sender->backlog == delivery)
        sender->backlog = NULL;
}

bool sender_is_under_way(const Sender *sender, Range range) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i] && range_meets(delivery_range(sender->live[i]), range))
            return true;
    return (sender->backlog && range_meets(delivery_range(sender->backlog), range)) ||
           (sender->job && range_meets(sender->window, range));
}

static void sender_end_again(Sender *sender) {
    if (!sender_is_under_way(sender, sender->again))
        sender->again = (Range){};
}

bool sender_settle(Sender *sender, Range range) {
    Range again = {MAX(range.since_ns, sender->again.since_ns),
                   MIN(range.until_ns, sender->again.until_ns)};
    bool comes_again = range_meets(range, sender->again);

    send_state_settle(&sender->state, range);
    if (comes_again)
        sender->state.counters.expired_ns += range_list_add(&sender->state.unsent, again);
    sender_end_again(sender);
    return comes_again;
}

static void sender_put_partial(Sender *sender, const SendPartial *partial) {
    send_state_put_partial(&sender->state, partial);
    if (range_meets(partial->range, sender->again))
        send_state_begin_anew(&sender->state, partial->range);
}

static void sender_on_done(void *userdata, Delivery *delivery, const DeliveryResult *result) {
    Sender *sender = userdata;
    bool was_backlog = sender->backlog == delivery;
    Range range = delivery_range(delivery);
    uint64_t missing_ns = delivery_missing_ns(delivery);
    uint64_t deleted_ns = delivery_deleted_ns(delivery);

    sender_forget(sender, delivery);
    if (was_backlog)
        sender_pace(sender, result->bytes);
    if (result->verdict == SEND_ACCEPTED || result->verdict == SEND_REFUSED) {
        if (sender_settle(sender, range))
            sender->state.counters.repeated_requests += result->requests;
        sender->newest_ns = MAX(sender->newest_ns, range.until_ns);
        sender_count(sender, result);
        sender->state.counters.missing_ns += missing_ns;
        sender->state.counters.deleted_ns += deleted_ns;
        if (result->requests > 0)
            sender_succeed(sender);
        else if (result->is_refused)
            sender->failures = 0;
    } else {
        sender_wait(sender, result);
        if (result->partial.n > 0)
            sender_put_partial(sender, &result->partial);
        sender_end_again(sender);
    }
    sender_save(sender);
    (void)delivery_free(delivery);
    sender_wake(sender);
}

static void sender_on_progress(void *userdata, const SendPartial *partial) {
    Sender *sender = userdata;

    sender_put_partial(sender, partial);
    sender_save(sender);
}

/* A request counts as in flight until a state that knows its end is on disk. */
static void sender_on_flight(void *userdata, int change) {
    Sender *sender = userdata;

    if (change > 0) {
        sender->flights++;
        sender_note(sender);
    } else {
        sender->flights--;
        sender->unsaved++;
    }
}

void sender_on_problem(void *userdata, const DeliveryProblem *problem) {
    Sender *sender = userdata;
    bool is_loss = problem->is_loss, is_size = problem->verdict == SEND_TOO_LARGE;
    LogRate *rate = is_loss ? &sender->refused_rate : &sender->again_rate;

    if (problem->verdict == SEND_ACCEPTED) {
        (void)log_limited_struct(&sender->warned_rate, LOG_LEVEL_WARNING, 0,
                                 LOG_FIELDS(sender_field(sender)), "Destination '%s' warns: %s",
                                 sender->config->name, problem->sentence);
        return;
    }
    if (problem->status != SEND_STATUS_SOURCE)
        sender->last_status = MAX(problem->status, 0L);
    sender->error_status = is_size ? SEND_STATUS_TOO_LARGE : problem->status;
    sender_keep_error(sender, problem->sentence);
    (void)log_limited_struct(
        rate, LOG_LEVEL_WARNING, 0,
        LOG_FIELDS({"PROFD_EVENT", is_loss ? "gateway-profiles-lost" : "gateway-destination-waits"},
                   sender_field(sender)),
        is_loss ? "Destination '%s' lost profiles: %s" : "Destination '%s' sends later: %s",
        sender->config->name, problem->sentence);
}

void sender_listen(Sender *sender) {
    sender->events = (DeliveryEvents){
        .on_flight = sender_on_flight,
        .on_progress = sender_on_progress,
        .on_problem = sender_on_problem,
        .on_done = sender_on_done,
        .userdata = sender,
    };
}

void sender_deliver(Sender *sender, Interval *interval, uint64_t delay_ns, Delivery **ret) {
    DeliveryPlan plan = {
        .interval = interval,
        .partial =
            send_state_partial(&sender->state, (Range){interval->since_ns, interval->until_ns}),
        .delay_ns = delay_ns,
    };
    int r = delivery_new(&sender->settings, &sender->events, &plan, ret);

    if (r < 0)
        (void)log_limited_struct(
            &sender->again_rate, LOG_LEVEL_ERROR, r,
            LOG_FIELDS({"PROFD_EVENT", "gateway-destination-waits"}, sender_field(sender)),
            "Failed to send an interval to destination '%s', trying later: %m",
            sender->config->name);
}
