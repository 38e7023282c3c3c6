/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "control/control-private.h"
#include "control/intake.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The listening socket and who may connect. The number of connections is limited, and some are
 * reserved for administrators and for profd-read, so that they can act when others take the rest. A
 * client for which there is no room gets an error before its connection is closed.
 */

#define IDLE_NS (45 * NS_PER_SECOND)

enum {
    ACCEPTS = 32, /* accepted in a row before other sources have their turn */
    CONNECTIONS_MAX = 64,
    KEPT_FOR_ADMINS = 16,
    OF_UID_MAX = 16,
    OF_UID_WITHOUT_RIGHT_MAX = 2,
    WITHOUT_RIGHT_MAX = 8,
    BUSY_RETRY_MS = 1000,
};

static int admission_on_listening(void *userdata);

static bool admission_has_room(const Control *control, const Peer *peer) {
    unsigned all = 0, of_uid = 0, without_right = 0, not_admin = 0;
    const Caller *c;

    LIST_FOREACH(c, &control->callers, list) {
        all++;
        of_uid += c->peer.uid == peer->uid;
        without_right += c->peer.right == RIGHT_ANYONE;
        not_admin += c->peer.right != RIGHT_ADMIN;
    }
    if (all >= CONNECTIONS_MAX)
        return false;
    if (peer->right != RIGHT_ADMIN && not_admin >= CONNECTIONS_MAX - KEPT_FOR_ADMINS)
        return false;
    if (peer->right == RIGHT_ANYONE)
        return of_uid < OF_UID_WITHOUT_RIGHT_MAX && without_right < WITHOUT_RIGHT_MAX;
    return of_uid < OF_UID_MAX;
}

/* Takes ownership of fd and parameters. The client reads this error instead of its first reply. */
static void admission_turn_away(const Control *control, int fd, const char *error,
                                json_t *parameters) {
    _cleanup_json_ json_t *message = json_pack("{s:s, s:o}", "error", error, "parameters",
                                               parameters ? parameters : json_object());
    _cleanup_(buffer_done) Buffer out = {};

    if (message && message_append(&out, message) == 0)
        (void)!send(fd, out.data, out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    intake_close(control, fd);
}

/* Takes ownership of fd. */
static void admission_let_in(Control *control, int fd) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 5};
    Peer peer;
    int r = peer_of(fd, &control->options.groups, &peer);

    intake_begin(fd);
    if (r < 0) {
        log_limited(
            &rate, LOG_LEVEL_WARNING, r,
            "Failed to read the user of a connection to the control socket, closing it: %m");
        intake_close(control, fd);
    } else if (peer.right == RIGHT_NOTHING)
        admission_turn_away(control, fd, "org.varlink.service.PermissionDenied", NULL);
    else if (!admission_has_room(control, &peer)) {
        log_limited(&rate, LOG_LEVEL_NOTICE, 0,
                    "There is no room for another connection of user %u (pid %d)",
                    (unsigned)peer.uid, (int)peer.pid);
        admission_turn_away(control, fd, "io.profd.Control.Busy",
                            json_pack("{s:i}", "retryAfterMs", BUSY_RETRY_MS));
    } else
        (void)caller_new(control, fd, &peer);
}

/* Do not move a tick that is scheduled already. */
static int admission_tick_later(Control *control) {
    if (control->has_tick)
        return 0;
    control->has_tick = true;
    return loop_trigger_after(control->tick, MIN(control->idle_ns / 4, CONTROL_TICK_NS));
}

static int admission_on_tick(void *userdata) {
    Control *control = userdata;
    uint64_t now = clock_monotonic_ns();
    Caller *c;

    control->has_tick = false;
    LIST_FOREACH(c, &control->callers, list)
        caller_tick(c, now);
    if (!control->listening)
        (void)loop_add_readable(control->options.loop, control->options.fd, admission_on_listening,
                                control, &control->listening);
    return LIST_EMPTY(&control->callers) && control->listening ? 0 : admission_tick_later(control);
}

/* Without descriptors or memory, accept() would fail again and again: stop listening until the next
 * tick. */
static int admission_on_listening(void *userdata) {
    Control *control = userdata;

    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(control->options.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            admission_let_in(control, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN) {
            log_warning(-errno, "Failed to accept a connection to the control socket, trying again "
                                "in a second: %m");
            control->listening = loop_source_free(control->listening);
        }
        break;
    }
    return admission_tick_later(control);
}

static bool admission_has_method(const ControlOptions *options, const char *name) {
    for (size_t i = 0; i < options->n_methods; i++)
        if (strcmp(options->methods[i].name, name) == 0)
            return true;
    return false;
}

static int admission_check_table(const Control *control) {
    const ControlOptions *options = &control->options;
    const char *name;
    size_t n = 0;

    for (; (name = interface_method(control->interface, n)); n++)
        if (!admission_has_method(options, name))
            return log_error(-EINVAL, "Method %s of %s is in no table of this program", name,
                             interface_name(control->interface));
    for (size_t i = 0; i < options->n_methods; i++) {
        bool is_known = false;

        for (size_t k = 0; !is_known && k < n; k++)
            is_known =
                strcmp(interface_method(control->interface, k), options->methods[i].name) == 0;
        if (!is_known)
            return log_error(-EINVAL, "Method %s of this program is not in %s",
                             options->methods[i].name, interface_name(control->interface));
    }
    return options->n_methods == n ? 0 : log_error(-EINVAL, "A method has two rows");
}

static int admission_start(Control *control) {
    Loop *loop = control->options.loop;
    int r = interface_new(interface_text_control, &control->interface, NULL);

    if (r == 0)
        r = interface_new(interface_text_service, &control->service, NULL);
    if (r == 0)
        r = admission_check_table(control);
    if (r == 0)
        r = loop_add_deferred(loop, admission_on_tick, control, &control->tick);
    if (r == 0)
        r = loop_add_deferred(loop, caller_on_heavy_turn, control, &control->heavy_turn);
    return r == 0 ? loop_add_readable(loop, control->options.fd, admission_on_listening, control,
                                      &control->listening)
                  : r;
}

int control_new(const ControlOptions *options, Control **ret) {
    _cleanup_(control_freep) Control *control = calloc(1, sizeof(*control));
    int fd = options->fd, r;

    if (!control) {
        closep(&fd);
        return -ENOMEM;
    }
    TAILQ_INIT(&control->heavy);
    control->options = *options;
    control->idle_ns = options->idle_ns > 0 ? options->idle_ns : IDLE_NS;
    r = admission_start(control);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(control);
    return 0;
}

Control *control_free(Control *control) {
    if (!control)
        return NULL;
    while (!LIST_EMPTY(&control->callers))
        caller_free(LIST_FIRST(&control->callers));
    loop_source_free(control->listening);
    loop_source_free(control->tick);
    loop_source_free(control->heavy_turn);
    closep(&control->options.fd);
    interface_free(control->interface);
    interface_free(control->service);
    free(control);
    return NULL;
}
