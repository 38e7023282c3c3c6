/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "send/state-file.h"
#include "util/clock.h"

/*
 * Every interval joins the list of what is not sent as soon as it is offered, and leaves it when
 * the engine has accepted or refused it: what is in flight, what failed and what was never tried
 * are the same to the state. A live interval is sent at once if the engine answers; everything else
 * is read from profd again, one window at a time and only while no live interval is on its way. The
 * state is written before anything could be lost, so a kill at any moment costs a repeated request
 * and no interval.
 */

#define SENDER_PROFD_AWAY_NS UINT64_C(5000000000)
#define SENDER_LOG_EVERY_NS  UINT64_C(60000000000)
/* A gap that is longer than its time by more than this was made by a clock. */
#define SENDER_JUMP_INTERVALS 2
/* Attempts to read a window before it counts as missing. */
enum { SENDER_UNREADABLE_MAX = 5 };

static void sender_work(Sender *sender);
static void sender_save(Sender *sender);

static LogField sender_field(const Sender *sender) {
    return (LogField){"PROFD_DESTINATION", sender->config->name};
}

static void sender_note(const Sender *sender) {
    if (sender->flights_fd >= 0)
        state_file_put_flights(sender->flights_fd, sender->flights + sender->unsaved);
}

static void sender_on_saved(void *userdata, int error) {
    Sender *sender = userdata;

    sender->save = NULL;
    if (error < 0) {
        (void)log_limited_struct(&sender->save_rate, LOG_LEVEL_ERROR, error,
                                 LOG_FIELDS(sender_field(sender)),
                                 "Failed to write the state of destination '%s' in '%s', after a "
                                 "restart it sends intervals again: %m",
                                 sender->config->name, sender->state_folder);
        return;
    }
    sender->unsaved -= sender->saving;
    sender->saving = 0;
    sender_note(sender);
    if (sender->is_dirty)
        sender_save(sender);
}

static int sender_hand_over(Sender *sender) {
    DiskSave save = {
        .folder = sender->state_folder, .name = sender->config->name, .suffix = STATE_SUFFIX};
    int r = send_state_print(&sender->state, &save.text);

    if (r == 0)
        return disk_worker_save(sender->settings.worker, &save, sender_on_saved, sender,
                                &sender->save);
    buffer_done(&save.text);
    return r;
}

/* The state is written soon; while one is being written only the last of those that follow is. */
static void sender_save(Sender *sender) {
    sender->is_dirty = true;
    if (sender->save || sender_hand_over(sender) < 0)
        return;
    sender->is_dirty = false;
    sender->saving = sender->unsaved;
}

void sender_keep_error(Sender *sender, const char *sentence) {
    (void)snprintf(sender->last_error, sizeof(sender->last_error), "%s", sentence);
    sender->last_error_ns = clock_ns(CLOCK_REALTIME);
}

bool sender_is_waiting(const Sender *sender) {
    return sender->failures > 0 && sender->wait_ns > clock_monotonic_ns();
}

static void sender_wake_at(Sender *sender, uint64_t monotonic_ns) {
    uint64_t now = clock_monotonic_ns();

    (void)loop_trigger_after(sender->timer, monotonic_ns > now ? monotonic_ns - now : 0);
}

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

/* Whether a part of the range is being read or sent. */
static bool sender_is_under_way(const Sender *sender, Range range) {
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

/* A span is done, but for times that came again meanwhile. True: there are such. */
static bool sender_settle(Sender *sender, Range range) {
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
    sender_work(sender);
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

static void sender_on_problem(void *userdata, const DeliveryProblem *problem) {
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

/* What cannot be sent now is in the list anyway. */
static void sender_deliver(Sender *sender, Interval *interval, uint64_t delay_ns, Delivery **ret) {
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

static Delivery **sender_free_live(Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (!sender->live[i])
            return &sender->live[i];
    return NULL;
}

static bool sender_is_live(const Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i])
            return true;
    return false;
}

/* One that waits for its time to be sent leaves the time to the backlog. */
static bool sender_is_live_under_way(const Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i] && (sender->failures > 0 || delivery_has_begun(sender->live[i])))
            return true;
    return false;
}

static LossCounts sender_losses(const Sender *sender) {
    const SendCounters *counters = &sender->state.counters;

    return (LossCounts){.expired_ns = counters->expired_ns, .deleted_ns = counters->deleted_ns};
}

static void sender_note_losses(Sender *sender) {
    const LossCounts counts = sender_losses(sender);
    char sentence[LOSS_SENTENCE_MAX];

    if (loss_note_take(&sender->loss, &counts, sender->rules.max_age_ns > 0, clock_monotonic_ns(),
                       sentence))
        log_struct(LOG_LEVEL_WARNING, 0,
                   LOG_FIELDS({"PROFD_EVENT", "gateway-profiles-lost"}, sender_field(sender)),
                   "Destination '%s' lost profiles: %s", sender->config->name, sentence);
}

static void sender_miss(Sender *sender) {
    sender->unreadable = 0;
    sender->state.counters.missing_ns += sender->window.until_ns - sender->window.since_ns;
    (void)sender_settle(sender, sender->window);
}

static void sender_lose_window(Sender *sender, const char *sentence) {
    sender_on_problem(sender, &(DeliveryProblem){SEND_REFUSED, true, SEND_STATUS_LOST, sentence});
    sender_miss(sender);
    sender_save(sender);
}

/* Perhaps profd denies only one of several merged intervals. */
static void sender_on_denied(Sender *sender) {
    if (sender->merge > 1)
        sender->merge = 1;
    else
        sender_lose_window(sender, "profd recorded stacks of user memory for a while, which are "
                                   "for administrators only");
}

static uint64_t sender_pause_ns(const Sender *sender) {
    return sender->window_pause_ns > 0 ? sender->window_pause_ns : SENDER_PROFD_AWAY_NS;
}

static void sender_on_no_window(Sender *sender, const char *sentence) {
    sender_on_problem(sender, &(DeliveryProblem){SEND_AGAIN, false, SEND_STATUS_SOURCE, sentence});
}

/* A profd that is away comes back, however long that takes: nothing is given up meanwhile. */
static void sender_on_profd_away(Sender *sender) {
    sender->backlog_ns = clock_monotonic_ns() + sender_pause_ns(sender);
    sender_on_no_window(sender,
                        "profd is away, or refuses to give what it recorded; 'profctl status' "
                        "shows whether it runs, and the gateway has to be in profd-read");
}

/* A window that profd cannot give, though it is there, holds up the others for a moment only. The
 * pauses grow, so that restarts of profd, each of which may break one attempt, use up few. */
static void sender_on_unreadable(Sender *sender, int error) {
    const char *reason = error == -EPIPE ? "profd breaks off" : strerror(-error);
    char sentence[192];

    if (sender->merge > 1) {
        sender->merge = 1;
        sender->unreadable = 0;
    }
    sender->backlog_ns = clock_monotonic_ns() + (sender_pause_ns(sender) << sender->unreadable);
    if (++sender->unreadable >= SENDER_UNREADABLE_MAX) {
        (void)snprintf(sentence, sizeof(sentence), "what profd recorded cannot be read: %s",
                       reason);
        sender_lose_window(sender, sentence);
        return;
    }
    (void)snprintf(sentence, sizeof(sentence),
                   "what profd recorded cannot be read, attempt %u of %u: %s; its log may say why",
                   sender->unreadable, SENDER_UNREADABLE_MAX, reason);
    sender_on_no_window(sender, sentence);
}

static void sender_on_window(void *userdata, int error, Interval *interval) {
    Sender *sender = userdata;

    sender->job = NULL;
    if (error == 0 && interval) {
        sender->unreadable = 0;
        sender_deliver(sender, interval, 0, &sender->backlog);
        if (sender->backlog)
            return;
        sender->backlog_ns = clock_monotonic_ns() + sender_pause_ns(sender);
        sender_work(sender);
        return;
    }
    if (error == -ENODATA) {
        sender->state.counters.deleted_ns += interval ? interval->deleted_ns : 0;
        sender_miss(sender);
        sender_save(sender);
    } else if (error == -EACCES)
        sender_on_denied(sender);
    else if (error == -ENOTCONN)
        sender_on_profd_away(sender);
    else
        sender_on_unreadable(sender, error);
    sender_work(sender);
}

/* Live intervals are in the list too, as its newest. */
static uint64_t sender_live_since(const Sender *sender) {
    uint64_t since_ns = UINT64_MAX;

    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i])
            since_ns = MIN(since_ns, delivery_range(sender->live[i]).since_ns);
    return since_ns;
}

static void sender_read_backlog(Sender *sender) {
    const BacklogTime time = {clock_ns(CLOCK_REALTIME), sender_live_since(sender)};
    SourceWindow window;
    int r;

    bool has_next =
        backlog_next(&sender->state, &sender->rules, sender->merge, &time, &sender->window);

    sender_note_losses(sender);
    if (!has_next) {
        sender->merge = 1;
        return;
    }
    sender->window.until_ns = MIN(sender->window.until_ns, time.live_ns);
    if (sender->window.since_ns >= sender->window.until_ns)
        return;
    window =
        (SourceWindow){.since_ns = sender->window.since_ns, .until_ns = sender->window.until_ns};
    r = source_window(sender->source, &window, sender_on_window, sender, &sender->job);
    if (r == 0)
        return;
    sender->job = NULL;
    sender_on_unreadable(sender, r);
    sender_wake_at(sender, sender->backlog_ns);
}

/* Does what is due, and arranges to be called again. */
static void sender_work(Sender *sender) {
    sender_note_losses(sender);
    if (sender->job || sender->backlog || sender_is_live_under_way(sender) ||
        sender->state.unsent.n == 0)
        return;
    if (sender_is_waiting(sender))
        sender_wake_at(sender, MAX(sender->wait_ns, sender->backlog_ns));
    else if (sender->backlog_ns > clock_monotonic_ns())
        sender_wake_at(sender, sender->backlog_ns);
    else
        sender_read_backlog(sender);
}

static int sender_on_time(void *userdata) {
    sender_work(userdata);
    return 0;
}

/* After a failure one request at a time shows whether the engine is back. */
static bool sender_may_send_live(const Sender *sender) {
    if (sender->failures > 0)
        return !sender_is_waiting(sender) && !sender->backlog && !sender_is_live(sender);
    return true;
}

/* Where the time begins that was not followed before an interval. What lies between two intervals
 * of one run lasts as long as CLOCK_BOOTTIME says; if it looks longer, a clock that was behind was
 * set right: what was sent before it fell behind is no gap, and of the rest only an absence is. */
static uint64_t sender_gap_since(Sender *sender, uint64_t since_ns) {
    const SendState *state = &sender->state;
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), interval_ns = sender->rules.interval_ns;
    uint64_t passed_ns = sender->offered_ns > 0 ? now_ns - sender->offered_ns : UINT64_MAX / 2;
    uint64_t away_ns = 0;

    sender->offered_ns = now_ns;
    if (since_ns <= state->live_ns ||
        since_ns - state->live_ns <= passed_ns + SENDER_JUMP_INTERVALS * interval_ns)
        return state->live_ns;
    if (passed_ns >= 2 * interval_ns)
        away_ns = (passed_ns / interval_ns - 1) * interval_ns;
    return MIN(state->high_ns, since_ns - away_ns);
}

/* The time before an interval that was not followed is read as windows, except a sleep in it. */
static void sender_add_gap(Sender *sender, Range gap, const Interval *interval, uint64_t now_ns) {
    backlog_add(&sender->state, gap, now_ns);
    for (size_t i = 0; i < interval->n_sleeps; i++) {
        const IntervalSleep *sleep = &interval->sleeps[i];

        backlog_forget(&sender->state, (Range){MAX(sleep->since_ns, gap.since_ns),
                                               MIN(sleep->until_ns, gap.until_ns)});
    }
}

static void sender_move(Sender *sender, uint64_t since_ns, uint64_t until_ns) {
    sender->state.live_ns = until_ns;
    sender->state.high_ns = MAX(sender->state.high_ns, until_ns);
    /* A clock was set back: what was sent is not that new. */
    if (sender->newest_ns > until_ns)
        sender->newest_ns = since_ns;
}

/* An interval beyond the share joins what waits before it, so that an absence stays one range; the
 * backlog leaves it out and counts it then. */
static bool sender_continues_backlog(const Sender *sender, Range range) {
    const RangeList *unsent = &sender->state.unsent;

    return unsent->n > 0 && unsent->items[unsent->n - 1].until_ns == range.since_ns;
}

/* The clock was set back, and what was recorded at this time before is not sent yet. A live
 * interval lacks that, so it is left to a window. */
static bool sender_comes_again(Sender *sender, Range range) {
    SendState *state = &sender->state;

    if (range.since_ns >= state->high_ns || !range_list_meets(&state->unsent, range))
        return false;
    send_state_begin_anew(state, range);
    if (sender_is_under_way(sender, range))
        sender->again = sender->again.until_ns == 0
                            ? range
                            : (Range){MIN(sender->again.since_ns, range.since_ns),
                                      MAX(sender->again.until_ns, range.until_ns)};
    return true;
}

void sender_offer(Sender *sender, Interval *interval) {
    SendState *state = &sender->state;
    Range range = {interval->since_ns, interval->until_ns};
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    bool is_first = state->live_ns == 0, has_gap = !is_first && range.since_ns > state->live_ns;
    bool has_share;
    uint64_t gap_ns;
    Delivery **slot = sender_free_live(sender);

    if (range.since_ns >= range.until_ns)
        return;
    /* Its begin was sent with another length of the interval, so its rest becomes a window. */
    if (range.since_ns < state->live_ns && state->live_ns < range.until_ns) {
        range.since_ns = state->live_ns;
        slot = NULL;
    }
    if (sender_comes_again(sender, range))
        slot = NULL;
    gap_ns = sender_gap_since(sender, range.since_ns);
    if (has_gap)
        sender_add_gap(sender, (Range){gap_ns, range.since_ns}, interval, now_ns);
    sender_move(sender, range.since_ns, range.until_ns);
    has_share = backlog_has_share(&sender->rules, range.since_ns);
    if (!has_share) {
        sender->newest_ns = MAX(sender->newest_ns, range.until_ns);
        slot = NULL;
    }
    if (has_share || sender_continues_backlog(sender, range))
        backlog_add(state, range, MIN(now_ns, range.until_ns));
    else
        state->counters.thinned_intervals++;
    if (slot && sender_may_send_live(sender))
        sender_deliver(sender, interval, sender->spread_ns, slot);
    else
        slot = NULL;
    /* What is on its way is written when it arrived: until then the file asks for it again. */
    if (!slot || is_first || has_gap || sender->is_dirty)
        sender_save(sender);
    sender_work(sender);
}

int sender_start(Sender *sender) {
    unsigned flights;
    int r;

    sender->events = (DeliveryEvents){
        .on_flight = sender_on_flight,
        .on_progress = sender_on_progress,
        .on_problem = sender_on_problem,
        .on_done = sender_on_done,
        .userdata = sender,
    };
    sender->merge = 1;
    sender->refused_rate = sender->again_rate = sender->warned_rate = sender->save_rate =
        (LogRate){.interval_ns = SENDER_LOG_EVERY_NS, .burst = 1};
    sender->settings.counters = &sender->state.counters;
    sender->loss.noted = sender_losses(sender);
    flights = state_file_flights(sender->state_folder, sender->config->name);
    sender->flights_fd = state_file_open_flights(sender->state_folder, sender->config->name);
    r = disk_worker_new(sender->settings.loop, &sender->settings.worker);
    if (r == 0)
        r = loop_add_deferred(sender->settings.loop, sender_on_time, sender, &sender->timer);
    if (r == 0 && flights > 0) {
        sender->state.counters.repeated_requests += flights;
        /* The note stays as it is until this is on disk. */
        sender->unsaved = flights;
        sender_save(sender);
    }
    return r;
}

void sender_stop(Sender *sender) {
    bool is_handed_over;

    sender->job = source_job_cancel(sender->job);
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        sender->live[i] = delivery_free(sender->live[i]);
    sender->backlog = delivery_free(sender->backlog);
    sender->timer = loop_source_free(sender->timer);
    /* After the state that is being written, so it is the last one. */
    sender->save = disk_job_forget(sender->save);
    is_handed_over =
        sender->settings.worker && sender->state.live_ns > 0 && sender_hand_over(sender) == 0;
    if (!disk_worker_end(sender->settings.worker)) {
        /* The note stays as it is, and open, because closing it may wait too. */
        log_struct(LOG_LEVEL_WARNING, 0, LOG_FIELDS(sender_field(sender)),
                   "A disk of destination '%s' hangs, so its state was not written; it will send "
                   "intervals again",
                   sender->config->name);
        return;
    }
    if (is_handed_over)
        sender->unsaved = 0;
    sender_note(sender);
    if (sender->flights_fd >= 0)
        (void)close(sender->flights_fd);
}
