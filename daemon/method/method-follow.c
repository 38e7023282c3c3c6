/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "store/follow/follower.h"
#include "util/clock.h"

/*
 * Follow(): waits until the session has written something, finds the begin of the window on the
 * housekeeper's thread, and gives the connection to the follower.
 */

/* The longest is less than a client waits before it takes the daemon for stuck. */
#define EVERY_MIN_NS NS_PER_SECOND
#define EVERY_MAX_NS (30 * NS_PER_SECOND)

typedef struct Following {
    Daemon *daemon;
    Call *call;
    FollowerOptions options;
    Follower *follower;
    uint64_t end_ns; /* CLOCK_MONOTONIC; a sweep that began after this has to be written */
    uint64_t sweep;
    int error;
    SnapshotFailure failure;
} Following;

static void method_follow_free(void *userdata) {
    Following *f = userdata;

    follower_free(f->follower);
    free(f);
}

static void method_follow_seek(void *userdata) {
    Following *f = userdata;

    f->error = follower_seek(f->follower, &f->failure);
}

static void method_follow_run(void *userdata, const CallSink *sink) {
    follower_run(userdata, sink->socket, sink->send, sink->to);
}

static int method_follow_fail(Following *f, Call *call) {
    if (f->error == -EACCES)
        return call_fail_permission(call);
    if (f->failure.error == SNAPSHOT_NO_SESSION)
        return method_fail_no_session(f->daemon, call, "NoSuchSession", f->options.session);
    if (f->failure.error == SNAPSHOT_UNAVAILABLE)
        return method_fail_no_window(call, &f->failure);
    return call_fail_reason(call, f->error, NULL);
}

static void method_follow_answer(void *userdata, Call *call) {
    Following *f = userdata;
    Daemon *daemon = f->daemon;
    Follower *follower = f->follower;

    if (f->error < 0) {
        (void)method_follow_fail(f, call);
        return;
    }
    if (call_reply_stream(call,
                          json_pack("{s:o}", "bootId", answer_text(store_boot(daemon->store))),
                          &(CallStream){method_follow_run, follower}) > 0) {
        f->follower = NULL;
        (void)daemon_follow_sweep(daemon);
    }
}

static int method_follow_begin(Following *f, Call *call) {
    Daemon *daemon = f->daemon;
    int r = follower_new(daemon->followers, &f->options, &f->follower);

    if (r < 0) {
        free(f);
        return r == -EBUSY ? call_fail_busy(call) : r;
    }
    return errand_run(daemon->waits, daemon->housekeeper, call,
                      &(ErrandOptions){.work = method_follow_seek,
                                       .answer = method_follow_answer,
                                       .release = method_follow_free,
                                       .userdata = f});
}

/* "NANOSECONDS:BOOT", hexadecimal. A position in another boot means the begin of this one. */
static int method_follow_take_position(Following *f, const char *text) {
    char *end;

    errno = 0;
    f->options.position_ns = strtoull(text, &end, 16);
    if (errno != 0 || end == text || *end != ':' || end[1] == '\0')
        return -EINVAL;
    if (strcmp(end + 1, store_boot(f->daemon->store)) != 0 || f->options.position_ns == 0)
        f->options.position_ns = 1;
    return 0;
}

static int method_follow_take(Following *f, Call *call) {
    FollowerOptions *o = &f->options;
    const char *session = "default", *position = NULL;
    int since = ask_span(call, "sinceUsec", &o->since_ns),
        until = ask_span(call, "untilUsec", &o->until_ns);

    (void)ask_text(call, "session", &session);
    if (since < 0 || until < 0)
        return method_ended(
            call_fail_parameter(call, since < 0 ? "sinceUsec" : "untilUsec", ASK_TIME));
    if (snprintf(o->session, sizeof(o->session), "%s", session) >= (int)sizeof(o->session))
        return method_ended(method_fail_no_session(f->daemon, call, "NoSuchSession", session));
    if (ask_text(call, "position", &position) && since > 0)
        return method_ended(call_fail_parameter(call, "position", "it excludes 'sinceUsec'"));
    if (position && method_follow_take_position(f, position) < 0)
        return method_ended(
            call_fail_parameter(call, "position", "it is no time, colon and boot id"));
    if (!position && since == 0)
        o->since_ns = clock_ns(CLOCK_REALTIME);
    if (until > 0 && o->until_ns <= o->since_ns)
        return method_ended(
            call_fail_parameter(call, "untilUsec", "it is not after the start of the window"));
    o->every_ns = EVERY_MIN_NS;
    if (ask_span(call, "everyUsec", &o->every_ns) < 0)
        return method_ended(call_fail_parameter(call, "everyUsec", ASK_TIME));
    o->every_ns = MAX(o->every_ns, EVERY_MIN_NS);
    o->every_ns = MIN(o->every_ns, EVERY_MAX_NS);
    o->privileged = call_peer(call)->right >= RIGHT_ADMIN;
    return METHOD_GOES_ON;
}

int method_follow(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    Following *f = calloc(1, sizeof(*f));
    const SessionEntry *entry;
    int r;

    if (!f)
        return -ENOMEM;
    f->daemon = daemon;
    r = method_follow_take(f, call);
    entry = session_table_find(daemon->sessions, f->options.session);
    if (r == 0 && entry && entry->session && entry->sensitive && !f->options.privileged)
        r = method_ended(call_fail_permission(call));
    if (r != 0) {
        free(f);
        return MIN(r, 0);
    }
    return method_follow_begin(f, call);
}
