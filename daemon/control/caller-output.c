/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/socket.h>

#include "control/control-private.h"
#include "util/clock.h"

/*
 * The output of a connection: messages wait in a buffer until the socket takes them.
 */

/* A second trigger would move the turn behind connections that asked later. */
void caller_wake(Caller *caller) {
    if (!caller->is_awake)
        caller->is_awake = loop_trigger(caller->turn) == 0;
}

size_t caller_waiting(const Caller *caller) {
    return caller->out.size - caller->sent;
}

/* Also frees a buffer that a long reply has enlarged. */
void caller_drop_output(Caller *caller) {
    if (caller->out.allocated > 2 * CALLER_READ_BYTES)
        buffer_done(&caller->out);
    buffer_clear(&caller->out);
    caller->sent = 0;
}

/* Sends as much as the socket takes. */
void caller_flush(Caller *caller) {
    while (caller_waiting(caller) > 0 && !caller->is_gone) {
        ssize_t n = send(caller->fd, caller->out.data + caller->sent, caller_waiting(caller),
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            caller->is_gone = caller->has_ended = true;
            break;
        }
        caller->sent += (size_t)n;
        caller->stuck_since_ns = clock_monotonic_ns();
    }
    caller_drop_output(caller);
}

int caller_send(Caller *caller, const json_t *message, size_t limit) {
    int r;

    if (caller->is_gone)
        return -EPIPE;
    if (caller_waiting(caller) > OUTPUT_PAUSE_BYTES)
        caller_flush(caller);
    if (caller_waiting(caller) > limit)
        return -ENOBUFS;
    if (caller_waiting(caller) == 0)
        caller->stuck_since_ns = clock_monotonic_ns();
    r = message_append(&caller->out, message);
    /* A message is missing, so the client could not make sense of later ones: drop the
     * connection. */
    if (r < 0)
        caller->is_gone = caller->has_ended = true;
    caller_wake(caller);
    return r;
}
