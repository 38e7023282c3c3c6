/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender.h"

#include "send/sender-delivery.h"
#include "send/sender-window.h"
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

#define SENDER_LOG_EVERY_NS UINT64_C(60000000000)

/* One that waits for its time to be sent leaves the time to the backlog. */
static bool sender_is_live_under_way(const Sender *sender) {
    for (size_t i = 0; i < SENDER_LIVE_MAX; i++)
        if (sender->live[i] && (sender->failures > 0 || delivery_has_begun(sender->live[i])))
            return true;
    return false;
}

/* Does what is due, and arranges to be called again. */
static int sender_work(void *userdata) {
    Sender *sender = userdata;

    sender_note_losses(sender);
    if (sender->job || sender->backlog || sender_is_live_under_way(sender) ||
        sender->state.unsent.n == 0)
        return 0;
    if (sender_is_waiting(sender))
        sender_wake_at(sender, MAX(sender->wait_ns, sender->backlog_ns));
    else if (sender->backlog_ns > clock_monotonic_ns())
        sender_wake_at(sender, sender->backlog_ns);
    else
        sender_read_backlog(sender);
    return 0;
}

int sender_start(Sender *sender) {
    unsigned flights;
    int r;

    sender_listen(sender);
    sender->merge = 1;
    sender->refused_rate = sender->again_rate = sender->warned_rate = sender->save_rate =
        (LogRate){.interval_ns = SENDER_LOG_EVERY_NS, .burst = 1};
    sender->settings.counters = &sender->state.counters;
    sender->loss.noted = sender_losses(sender);
    flights = state_file_flights(sender->state_folder, sender->config->name);
    sender->flights_fd = state_file_open_flights(sender->state_folder, sender->config->name);
    r = disk_worker_new(sender->settings.loop, &sender->settings.worker);
    if (r == 0)
        r = loop_add_deferred(sender->settings.loop, sender_work, sender, &sender->timer);
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
