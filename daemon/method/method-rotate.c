/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "method/method-private.h"
#include "protocol/value.h"

/* Rotate() ends open segments, and answers when their files are there to be read. */

typedef struct Ended {
    char session[CONFIG_NAME_MAX];
    char path[CONFIG_PATH_MAX];
    uint64_t since_real_ns; /* of the session, which may have been opened anew meanwhile */
    uint64_t asked;
} Ended;

typedef struct Rotation {
    Daemon *daemon;
    size_t n;
    Ended ended[];
} Rotation;

static bool is_finished(const Daemon *daemon, const Ended *ended) {
    const Member *member = roster_find(daemon->roster, ended->session);

    return !member || !member->session || member->since_real_ns != ended->since_real_ns ||
           session_rotations(member->session).finished >= ended->asked;
}

static bool look_rotated(void *userdata, Call *call) {
    Rotation *rotation = userdata;
    json_t *paths;

    for (size_t i = 0; i < rotation->n; i++)
        if (!is_finished(rotation->daemon, &rotation->ended[i]))
            return false;
    paths = json_array();
    for (size_t i = 0; i < rotation->n; i++)
        value_append(&paths, answer_text(rotation->ended[i].path));
    (void)call_reply(call, json_pack("{s:o}", "segments", paths));
    return true;
}

/* 1: there is one more that ends; 0: there is nothing to end; -EBUSY: its writer is behind. */
static int rotate(Daemon *daemon, Member *member, Ended *ret) {
    ClockAnchor clock = clock_anchor_now();
    uint64_t before = session_rotations(member->session).asked;
    int r;

    if (!session_has_segment(member->session))
        return 0;
    snprintf(ret->path, sizeof(ret->path), "%s", session_path(member->session));
    memcpy(ret->session, member->config.name, sizeof(ret->session));
    ret->since_real_ns = member->since_real_ns;
    ret->asked = before + 1;
    if (!session_may_rotate(member->session, ROTATE_ASKED, &clock)) {
        session_ask_rotation(member->session);
        return 1;
    }
    r = daemon_rotate(daemon, member, ROTATE_ASKED, &clock);
    if (r < 0)
        return r;
    return session_rotations(member->session).asked > before ? 1 : -EBUSY;
}

/* One, or all that record. */
static int rotate_all(Daemon *daemon, Member *only, Rotation *rotation) {
    Member *member;
    int r = daemon_drain(daemon);

    for (size_t at = 0; r >= 0 && (member = roster_next(daemon->roster, &at));) {
        if (only && member != only)
            continue;
        r = rotate(daemon, member, &rotation->ended[rotation->n]);
        rotation->n += r > 0;
    }
    return MIN(r, 0);
}

int method_rotate(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    Member *only = NULL;
    Rotation *rotation;
    const char *name;
    int r;

    if (ask_text(call, "session", &name)) {
        only = method_member(daemon, call);
        if (!only)
            return 0;
        if (!member_records(only) || !session_has_segment(only->session))
            return method_fail_not_active(call, only);
    }
    rotation = calloc(1, sizeof(*rotation) + roster_count(daemon->roster) * sizeof(Ended));
    if (!rotation)
        return -ENOMEM;
    rotation->daemon = daemon;
    r = rotate_all(daemon, only, rotation);
    if (r < 0) {
        free(rotation);
        return r == -EBUSY ? call_fail_busy(call) : r;
    }
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.look = look_rotated, .release = free, .userdata = rotation});
}
