/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/control-private.h"

/*
 * Sends files to clients. Each file is sent by a thread of its own, so their number is limited, per
 * user too, and some are reserved for administrators.
 */

enum {
    /* The number of simultaneous transfers, each with a thread. */
    TRANSFERS_MAX = 16,
    TRANSFERS_FOR_ADMINS = 8,
    TRANSFERS_OF_UID_MAX = 4,
};

static int caller_transfer_on_transferred(void *userdata) {
    Caller *caller = userdata;

    caller->is_done = true;
    caller_wake(caller);
    return 0;
}

/* As for connections: one user cannot take all transfers, and some are reserved for
 * administrators. */
bool caller_may_transfer(const Caller *caller) {
    unsigned all = transfer_running(), of_uid = 0, left = TRANSFERS_MAX;
    const Caller *c;

    LIST_FOREACH(c, &caller->control->callers, list)
        of_uid += c->transfer && !c->streams && c->peer.uid == caller->peer.uid;
    if (caller->peer.right != RIGHT_ADMIN)
        left -= TRANSFERS_FOR_ADMINS;
    return all < left && of_uid < TRANSFERS_OF_UID_MAX;
}

int caller_transfer(Caller *caller, int fd, uint64_t bytes, const CallStream *stream) {
    TransferOptions options = {.loop = caller->control->options.loop,
                               .socket = caller->fd,
                               .fd = fd,
                               .bytes = bytes,
                               .stream = stream ? *stream : (CallStream){},
                               .stuck_ns = caller->control->idle_ns,
                               .on_end = caller_transfer_on_transferred,
                               .userdata = caller};
    int r;

    caller->streams = stream;
    buffer_append(&options.first, caller->out.data + caller->sent, caller_waiting(caller));
    caller_drop_output(caller);
    r = transfer_new(&options, &caller->transfer);
    caller->is_ending = true;
    caller_wake(caller);
    return r;
}
