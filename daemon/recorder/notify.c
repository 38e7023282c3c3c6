/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "session/degraded.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/parse.h"
#include "util/text.h"

/*
 * The recorder sends notifications for the whole service: the unit accepts them from all its
 * processes. The main loop feeds the watchdog only while sweeps complete. A writer that waits for a
 * faulty disk makes a session degraded, and that is no reason for a restart.
 *
 * sd_notify() waits while the service manager does not read. Recording must go on then, so messages
 * are sent here: what finds no room is dropped, since the next message is newer. Only messages that
 * come once wait for a moment.
 */

enum { NOTIFY_WAIT_MS = 100 };

struct Notify {
    bool (*is_alive)(void *userdata);
    void *userdata;
    LoopSource *timer;
    uint64_t interval_ns, checked_ns; /* interval_ns is 0 when no watchdog is set */
    bool is_reported;
};

static int notify_address(const char *path, struct sockaddr_un *ret, socklen_t *ret_size) {
    size_t n = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof(ret->sun_path))
        return -EAFNOSUPPORT;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, n);
    if (path[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

static void notify_send(const char *text, unsigned wait_ms) {
    const char *path = getenv("NOTIFY_SOCKET");
    const struct timeval wait = {.tv_usec = (suseconds_t)wait_ms * 1000};
    _cleanup_close_ int fd = -1;
    struct sockaddr_un address;
    socklen_t size;

    if (!path || notify_address(path, &address, &size) < 0)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | (wait_ms == 0 ? MSG_DONTWAIT : 0),
                 (const struct sockaddr *)&address, size);
}

/* WATCHDOG_PID holds the pid that systemd started, which is the keeper. */
static uint64_t notify_watchdog_ns(void) {
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t us = 0;

    return text && parse_u64(text, &us) == 0 && us <= UINT64_MAX / NS_PER_US ? us * NS_PER_US : 0;
}

static int notify_on_timer(void *userdata) {
    Notify *notify = userdata;
    bool is_alive = notify->is_alive(notify->userdata);

    notify->checked_ns = clock_monotonic_ns();
    if (is_alive)
        notify_send("WATCHDOG=1", 0);
    else if (!notify->is_reported)
        log_struct(LOG_LEVEL_ERROR, 0, LOG_FIELDS({"PROFD_EVENT", "drain-hung"}),
                   "No sweep over the rings has come to an end for a long time, leaving it to the "
                   "watchdog to start profd again");
    notify->is_reported = !is_alive;
    return 0;
}

int notify_new(Loop *loop, bool (*is_alive)(void *userdata), void *userdata, Notify **ret) {
    _cleanup_(notify_freep) Notify *notify = calloc(1, sizeof(*notify));
    uint64_t interval_ns = notify_watchdog_ns();
    int r = 0;

    if (!notify)
        return -ENOMEM;
    notify->interval_ns = interval_ns;
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

void notify_feed(Notify *notify) {
    if (notify && notify->interval_ns > 0 &&
        clock_monotonic_ns() - notify->checked_ns >= notify->interval_ns / 2)
        (void)notify_on_timer(notify);
}

void notify_ready(void) {
    notify_send("READY=1", NOTIFY_WAIT_MS);
}

void notify_reloading(void) {
    char text[64];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   clock_monotonic_ns() / NS_PER_US);
    notify_send(text, NOTIFY_WAIT_MS);
}

void notify_stopping(void) {
    notify_send("STOPPING=1", NOTIFY_WAIT_MS);
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
        notify_send((const char *)message.data, 0);
}
