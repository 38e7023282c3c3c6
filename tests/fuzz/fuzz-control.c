/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "control/control-private.h"
#include "fuzz.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * A connection on which any bytes come, in pieces, half closed or closed, read or not: the server
 * must be done with it when its client is. Input: a byte, odd where the client closes its half
 * first, then pieces, each behind a byte that says how long it is (0x3f, times 4; 0x80: all that is
 * left) and whether replies are read after it (0x40).
 */

enum { STEPS_MAX = 64, TURNS_MAX = 20000 };

static Loop *loop;
static Control *control;

static int reply_nothing(void *userdata _unused_, Call *call) {
    return call_reply(call, NULL);
}

static int wait_for_ever(void *userdata _unused_, Call *call _unused_) {
    return 0;
}

static int fail(void *userdata _unused_, Call *call _unused_) {
    return -EIO;
}

static int next_item(void *userdata, json_t **ret) {
    unsigned *left = userdata;

    if ((*left)-- == 0)
        return 0;
    *ret = json_object();
    return 1;
}

static int stream(void *userdata _unused_, Call *call) {
    unsigned *left = malloc(sizeof(*left));

    if (!left)
        return -ENOMEM;
    *left = 200;
    return call_stream(call, next_item, free, left);
}

static void add_methods(ControlMethod *ret, size_t *ret_n, const Interface *interface) {
    const char *name;
    size_t n = 0;

    for (; (name = interface_method(interface, n)); n++) {
        ret[n] = (ControlMethod){.name = name, .right = RIGHT_ANYONE, .run = reply_nothing};
        if (strncmp(name, "List", 4) == 0)
            ret[n] = (ControlMethod){name, RIGHT_READ, METHOD_MORE, false, stream};
        if (strcmp(name, "Monitor") == 0)
            ret[n] = (ControlMethod){name, RIGHT_READ, METHOD_MORE, false, wait_for_ever};
        if (strcmp(name, "Reload") == 0)
            ret[n].run = fail;
    }
    *ret_n = n;
}

static int swallow(LogLevel level _unused_, int error _unused_, const char *message _unused_,
                   const LogField *fields _unused_, size_t n _unused_) {
    return 0;
}

static void begin(void) {
    static ControlMethod methods[64];
    static Interface *interface;
    ControlOptions options = {.methods = methods, .version = "0"};

    log_set_backend(swallow);
    if (loop_new(&loop) < 0 || interface_new(interface_text_control, &interface, NULL) < 0)
        abort();
    add_methods(methods, &options.n_methods, interface);
    options.loop = loop;
    options.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control_new(&options, &control) < 0)
        abort();
}

static int stop_loop(void *userdata) {
    loop_stop(userdata);
    return 0;
}

/* Handles the events that are ready now. */
static void turn(void) {
    _cleanup_(loop_source_freep) LoopSource *source = NULL;

    if (loop_add_deferred(loop, stop_loop, loop, &source) < 0 || loop_trigger(source) < 0 ||
        loop_run(loop) < 0)
        abort();
}

static void read_some(int fd, size_t n) {
    char bytes[4096];

    (void)!recv(fd, bytes, MIN(n, sizeof(bytes)), MSG_DONTWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Peer peer = {.uid = 1, .right = RIGHT_READ};
    bool half_closes = size > 0 && *data & 1;
    int pair[2];

    if (!control)
        begin();
    data += size > 0;
    size -= size > 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        caller_new(control, pair[1], &peer) < 0)
        abort();
    for (int i = 0; size > 0 && i < STEPS_MAX; i++) {
        uint8_t what = *data;
        size_t n = what & 0x80 ? size - 1 : MIN(size - 1, (size_t)(what & 0x3f) * 4);

        (void)!send(pair[0], data + 1, n, MSG_NOSIGNAL);
        data += n + 1;
        size -= n + 1;
        turn();
        if (what & 0x40)
            read_some(pair[0], 4096);
    }
    if (half_closes)
        (void)shutdown(pair[0], SHUT_WR);
    turn();
    (void)close(pair[0]);
    /* A vanished client is noticed by its socket or by the periodic tick. */
    for (int i = 0; !LIST_EMPTY(&control->callers) && i < TURNS_MAX; i++) {
        caller_tick(LIST_FIRST(&control->callers), clock_monotonic_ns());
        turn();
    }
    if (!LIST_EMPTY(&control->callers))
        abort();
    return 0;
}
