/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender-window.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "send/sender-delivery.h"
#include "util/clock.h"

/*
 * Reads the backlog from profd, one window at a time. What profd cannot give now is asked for
 * again; what it has no more is counted and logged.
 */

#define SENDER_PROFD_AWAY_NS UINT64_C(5000000000)
/* Attempts to read a window before it counts as missing. */
enum { SENDER_UNREADABLE_MAX = 5 };

LossCounts sender_losses(const Sender *sender) {
    const SendCounters *counters = &sender->state.counters;

    return (LossCounts){.expired_ns = counters->expired_ns, .deleted_ns = counters->deleted_ns};
}

void sender_note_losses(Sender *sender) {
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
        sender_wake(sender);
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
    sender_wake(sender);
}

/* Live intervals are in the list too, as its newest. */
static uint64_t sender_live_since(const Sender *sender) {
    uint64_t since_ns = UINT64_MAX;

    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i])
            since_ns = MIN(since_ns, delivery_range(sender->live[i]).since_ns);
    return since_ns;
}

void sender_read_backlog(Sender *sender) {
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
