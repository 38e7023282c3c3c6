/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "control/control-private.h"
#include "control/intake.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * A connection reads bytes, handles messages one after the other, and writes bytes. It does one
 * step per turn (one message, or a piece of a list) and then waits behind all other connections, so
 * a client that sends much gets no more than its share. At most one message is read ahead. A client
 * that does not read its replies delays only its own later calls.
 *
 * A message that is long, or that follows one that took long, is heavy: it waits in a queue from
 * which one message is handled between two rounds of the others, and the queue as a whole gets a
 * limited share of the CPU. So clients with heavy calls delay each other, and a short call waits
 * for at most one heavy message.
 *
 * A client that has shut down its sending side may still read (has_ended). A client that has closed
 * both directions (is_gone) gets no reply, but its earlier messages count: oneway calls are still
 * run, unless they would wait for a moment that may be far away.
 */

enum {
    LIGHT_BYTES = 4096, /* longer than any reasonable call */
    LIGHT_NS = 1000000,
    HEAVY_SHARE = 8, /* heavy messages get one part in 8 of a CPU */
};

static int caller_on_turn(void *userdata);

/* Whether the client has closed both directions. */
static bool caller_is_hung_up(const Caller *caller) {
    struct pollfd fd = {.fd = caller->fd};

    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR)) != 0;
}

/* 1: *ret is a whole message without its NUL; 0: there is none yet; -EMSGSIZE: it is too long. */
static int caller_find_message(Caller *caller, Bytes *ret) {
    Buffer *in = &caller->in;
    const uint8_t *nul = NULL;

    if (in->size > caller->scanned)
        nul = memchr(in->data + caller->scanned, 0, in->size - caller->scanned);
    if (!nul) {
        caller->scanned = in->size;
        return in->size - caller->taken > MESSAGE_BYTES_MAX ? -EMSGSIZE : 0;
    }
    *ret =
        (Bytes){.data = in->data + caller->taken, .size = (size_t)(nul - in->data) - caller->taken};
    caller->scanned = (size_t)(nul - in->data);
    return 1;
}

static void caller_take_message(Caller *caller, Bytes bytes) {
    caller->taken += bytes.size + 1;
    caller->scanned = caller->taken;
}

/* Removes handled messages from the buffer, and frees the buffer of a long one. */
static void caller_tidy(Caller *caller) {
    Buffer *in = &caller->in;

    if (caller->taken == in->size && in->allocated > 2 * CALLER_READ_BYTES)
        buffer_done(in);
    else if (caller->taken > 0) {
        memmove(in->data, in->data + caller->taken, in->size - caller->taken);
        in->size -= caller->taken;
    }
    caller->scanned -= caller->taken;
    caller->taken = 0;
}

static size_t caller_room(const Caller *caller) {
    return MESSAGE_BYTES_MAX + 1 - (caller->in.size - caller->taken);
}

static void caller_log_descriptors(const Caller *caller) {
    static LogRate rate = {.interval_ns = CONTROL_RATE_NS, .burst = 5};

    log_limited(&rate, LOG_LEVEL_NOTICE, 0,
                "User %u (pid %d) sent a descriptor to the control socket, which takes none, "
                "closing the connection",
                (unsigned)caller->peer.uid, (int)caller->peer.pid);
}

static int caller_on_readable(void *userdata) {
    Caller *caller = userdata;
    size_t want;
    ssize_t n;

    caller_tidy(caller);
    want = MIN((size_t)CALLER_READ_BYTES, caller_room(caller));
    if (want == 0)
        return 0;
    if (!buffer_reserve(&caller->in, want)) {
        caller->is_ending = true;
        caller_wake(caller);
        return 0;
    }
    n = intake_receive(caller->fd, caller->in.data + caller->in.size, want);
    if (n > 0)
        buffer_commit(&caller->in, (size_t)n);
    else if (n == -EPERM) {
        caller_log_descriptors(caller);
        caller->is_done = true;
    } else if (n != -EAGAIN) {
        caller->has_ended = true;
        caller->is_gone = n < 0 || caller_is_hung_up(caller);
    }
    return caller_on_turn(caller);
}

static int caller_on_writable(void *userdata) {
    Caller *caller = userdata;

    caller_flush(caller);
    caller_wake(caller);
    return 0;
}

static int caller_set_source(Caller *caller, LoopSource **source, bool wanted,
                             int (*add)(Loop *, int, LoopHandler, void *, LoopSource **),
                             LoopHandler handler) {
    if (wanted == (*source != NULL))
        return 0;
    if (wanted)
        return add(caller->control->options.loop, caller->fd, handler, caller, source);
    *source = loop_source_free(*source);
    return 0;
}

static void caller_watch(Caller *caller) {
    bool is_open = !caller->transfer && !caller->is_done;
    bool reads = is_open && !caller->has_ended && !caller->is_ending && caller_room(caller) > 0;
    bool writes = is_open && caller_waiting(caller) > 0;

    if (caller_set_source(caller, &caller->readable, reads, loop_add_readable_handler,
                          LOOP_HANDLER(caller_on_readable)) < 0 ||
        caller_set_source(caller, &caller->writable, writes, loop_add_writable_handler,
                          LOOP_HANDLER(caller_on_writable)) < 0)
        caller->is_done = true;
}

/* How many heavy connections of this user wait before `caller`; NULL: all of them. */
static unsigned caller_heavy_rank(const Control *control, const Caller *caller, uid_t uid) {
    unsigned rank = 0;

    for (const Caller *c = TAILQ_FIRST(&control->heavy); c && c != caller; c = TAILQ_NEXT(c, heavy))
        rank += c->peer.uid == uid;
    return rank;
}

static int caller_trigger_heavy(const Control *control) {
    uint64_t now_ns = clock_monotonic_ns();

    return loop_trigger_after(control->heavy_turn,
                              control->heavy_from_ns - MIN(control->heavy_from_ns, now_ns));
}

/* Queues the connection so that each user has one heavy message handled before any user has a
 * second one. */
static void caller_wait_heavy(Caller *caller) {
    Control *control = caller->control;
    unsigned rank = caller_heavy_rank(control, NULL, caller->peer.uid);
    Caller *behind;

    TAILQ_FOREACH(behind, &control->heavy, heavy)
        if (caller_heavy_rank(control, behind, behind->peer.uid) > rank)
            break;
    if (behind)
        TAILQ_INSERT_BEFORE(behind, caller, heavy);
    else
        TAILQ_INSERT_TAIL(&control->heavy, caller, heavy);
    caller->is_heavy = true;
    (void)caller_trigger_heavy(control);
}

static void caller_leave_heavy(Caller *caller) {
    if (!caller->is_heavy)
        return;
    TAILQ_REMOVE(&caller->control->heavy, caller, heavy);
    caller->is_heavy = false;
}

/* Handles one message if no call is in progress and earlier replies were sent; returns 1 if it
 * did. */
static int caller_handle_message(Caller *caller, bool heavy_too) {
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    Bytes bytes;
    int r;

    if (caller->is_heavy || caller->call || caller->is_ending || caller->transfer ||
        caller_waiting(caller) > OUTPUT_PAUSE_BYTES)
        return 0;
    r = caller_find_message(caller, &bytes);
    if (r == 0)
        return 0;
    if (r > 0 && !heavy_too && (bytes.size > LIGHT_BYTES || caller->cost_ns > LIGHT_NS)) {
        caller_wait_heavy(caller);
        return 0;
    }
    caller->idle_since_ns = clock_monotonic_ns();
    if (r > 0)
        caller_take_message(caller, bytes);
    r = r < 0 ? call_refuse_message(caller, MESSAGE_SIZE) : call_begin(caller, bytes);
    if (r < 0)
        caller->is_ending = true;
    caller->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    return 1;
}

int caller_on_heavy_turn(void *userdata) {
    Control *control = userdata;
    Caller *caller = TAILQ_FIRST(&control->heavy);

    if (!caller)
        return 0;
    caller_leave_heavy(caller);
    if (!caller->is_done && caller_handle_message(caller, true) > 0)
        control->heavy_from_ns = clock_monotonic_ns() + (HEAVY_SHARE - 1) * caller->cost_ns;
    caller_wake(caller);
    return TAILQ_EMPTY(&control->heavy) ? 0 : caller_trigger_heavy(control);
}

static bool caller_outlives_client(const Call *call) {
    return call->oneway && !call->ends_with_client;
}

static void caller_step(Caller *caller) {
    bool is_busy = false;

    caller_flush(caller);
    if (caller->call && caller->is_gone && !caller_outlives_client(caller->call))
        caller->call = call_abandon(caller->call);
    if (caller->call && caller->call->next)
        is_busy = call_pump(caller->call) > 0;
    else
        is_busy = caller_handle_message(caller, false) > 0;
    /* Send what is ready now, because a round of all connections may take long. */
    if (is_busy)
        caller_flush(caller);
    if (is_busy)
        caller_wake(caller);
    else if (!caller->call && !caller->transfer && !caller->is_heavy && caller_waiting(caller) == 0)
        caller->is_done |= caller->is_ending || caller->has_ended;
}

static int caller_on_turn(void *userdata) {
    Caller *caller = userdata;

    caller->is_awake = false;
    if (!caller->transfer && !caller->is_done)
        caller_step(caller);
    caller_watch(caller);
    if (caller->is_done)
        caller_free(caller);
    return 0;
}

static bool caller_is_late(uint64_t since_ns, const Caller *caller, uint64_t now_ns) {
    return now_ns - MIN(since_ns, now_ns) >= caller->control->idle_ns;
}

void caller_tick(Caller *caller, uint64_t now_ns) {
    if (caller->transfer)
        return;
    if (caller_waiting(caller) > 0)
        caller->is_done |= caller_is_late(caller->stuck_since_ns, caller, now_ns);
    else if (!caller->call)
        caller->is_done |= caller_is_late(caller->idle_since_ns, caller, now_ns);
    if (!caller->readable && caller_is_hung_up(caller))
        caller->is_gone = caller->has_ended = true;
    if (caller->is_done || caller->is_gone)
        caller_wake(caller);
}

int caller_new(Control *control, int fd, const Peer *peer) {
    Caller *caller = calloc(1, sizeof(*caller));
    int r;

    if (!caller) {
        intake_close(control, fd);
        return -ENOMEM;
    }
    *caller = (Caller){.control = control,
                       .number = ++control->connections,
                       .peer = *peer,
                       .fd = fd,
                       .idle_since_ns = clock_monotonic_ns()};
    LIST_INSERT_HEAD(&control->callers, caller, list);
    r = loop_add_deferred(control->options.loop, caller_on_turn, caller, &caller->turn);
    if (r < 0) {
        caller_free(caller);
        return r;
    }
    caller_wake(caller);
    return 0;
}

Caller *caller_free(Caller *caller) {
    Control *control;

    if (!caller)
        return NULL;
    control = caller->control;
    caller_leave_heavy(caller);
    caller->call = call_abandon(caller->call);
    caller->transfer = transfer_free(caller->transfer);
    if (control->options.on_connection_gone)
        control->options.on_connection_gone(control->options.userdata, caller->number);
    LIST_REMOVE(caller, list);
    loop_source_free(caller->readable);
    loop_source_free(caller->writable);
    loop_source_free(caller->turn);
    buffer_done(&caller->in);
    buffer_done(&caller->out);
    intake_close(control, caller->fd);
    free(caller);
    return NULL;
}
