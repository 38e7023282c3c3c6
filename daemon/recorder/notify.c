/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/notify.h"

#include <errno.h>
#include <inttypes.h>

#include "session/degraded.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify-socket.h"
#include "util/text.h"

/*
 * The recorder sends notifications for the whole service: the unit accepts them from all its
 * processes. The main loop feeds the watchdog only while sweeps complete. A writer that waits for a
 * faulty disk makes a session degraded, and that is no reason for a restart.
 */

struct Notify {
    bool (*is_alive)(void *userdata);
    void *userdata;
    LoopSource *timer;
    bool is_reported;
};

static int notify_on_timer(void *userdata) {
    Notify *notify = userdata;
    bool is_alive = notify->is_alive(notify->userdata);

    if (is_alive)
        notify_socket_send("WATCHDOG=1", 0);
    else if (!notify->is_reported)
        log_struct(LOG_LEVEL_ERROR, 0, LOG_FIELDS({"PROFD_EVENT", "drain-hung"}),
                   "No sweep over the rings has come to an end for a long time, leaving it to the "
                   "watchdog to start profd again");
    notify->is_reported = !is_alive;
    return 0;
}

int notify_new(Loop *loop, bool (*is_alive)(void *userdata), void *userdata, Notify **ret) {
    _cleanup_(notify_freep) Notify *notify = calloc(1, sizeof(*notify));
    uint64_t interval_ns = notify_socket_watchdog_ns();
    int r = 0;

    if (!notify)
        return -ENOMEM;
    notify->is_alive = is_alive;
    notify->userdata = userdata;
    if (interval_ns > 0)
        r = loop_add_timer(loop, interval_ns / 2, notify_on_timer, notify, &notify->timer);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(notify);
    return 0;
}

Notify *notify_free(Notify *notify) {
    if (!notify)
        return NULL;
    loop_source_free(notify->timer);
    free(notify);
    return NULL;
}

/* Prints the rate only of a session that samples now: other rates are stale. */
static void notify_put_session(Buffer *line, const SessionEntry *entry, uint64_t now_ns) {
    unsigned degraded = session_entry_degraded(entry);
    SessionTotals totals = session_entry_totals(entry);

    if (degraded == 0 && !session_entry_samples(entry))
        return;
    text_printf(line, "%s%s: ", line->size > 0 ? "; " : "", entry->config.name);
    if (session_entry_samples(entry)) {
        text_printf(line, "%s, %" PRIu64 " samples, %.0f/s, ", entry->describe, totals.samples,
                    session_entry_rate(entry, now_ns));
        if (totals.lost > 0)
            text_printf(line, "%" PRIu64 " lost", totals.lost);
        else
            text_puts(line, "none lost");
    } else {
        text_puts(line, "records nothing");
    }
    if (degraded) {
        text_puts(line, ", degraded: ");
        degraded_names(line, degraded);
    }
}

void notify_status(const SessionTable *sessions, uint64_t now_ns, bool is_outdated) {
    _cleanup_(buffer_done) Buffer message = {}, line = {};

    for (size_t i = 0; i < session_table_count(sessions); i++)
        notify_put_session(&line, session_table_at(sessions, i), now_ns);
    if (is_outdated)
        text_printf(&line, "%sthe last reload was refused", line.size > 0 ? "; " : "");
    text_puts(&message, "STATUS=");
    buffer_append(&message, line.data, line.size);
    text_putc(&message, '\0');
    if (buffer_error(&line) == 0 && buffer_error(&message) == 0)
        notify_socket_send((const char *)message.data, 0);
}
