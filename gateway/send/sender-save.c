/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/sender-save.h"

#include <errno.h>
#include <stdio.h>

#include "send/state-file.h"
#include "util/clock.h"

/*
 * Writes the state of a sender, and has what all of its parts need. The note of requests in flight
 * lies beside the state: after a kill it says how many may have arrived twice.
 */

LogField sender_field(const Sender *sender) {
    return (LogField){"PROFD_DESTINATION", sender->config->name};
}

void sender_note(const Sender *sender) {
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

int sender_hand_over(Sender *sender) {
    DiskSave save = {
        .folder = sender->state_folder, .name = sender->config->name, .suffix = STATE_SUFFIX};
    int r = send_state_print(&sender->state, &save.text);

    if (r == 0)
        return disk_worker_save(sender->settings.worker, &save, sender_on_saved, sender,
                                &sender->save);
    buffer_done(&save.text);
    return r;
}

void sender_save(Sender *sender) {
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

void sender_wake(Sender *sender) {
    (void)loop_trigger_after(sender->timer, 0);
}

void sender_wake_at(Sender *sender, uint64_t monotonic_ns) {
    uint64_t now = clock_monotonic_ns();

    (void)loop_trigger_after(sender->timer, monotonic_ns > now ? monotonic_ns - now : 0);
}
