/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "method/method-private.h"
#include "protocol/value.h"

/* Rotate() ends open segments and replies when their files can be read. */

typedef struct Ended {
    char session[CONFIG_NAME_MAX];
    char path[CONFIG_PATH_MAX];
    uint64_t since_real_ns; /* start of the session, to detect that it was restarted meanwhile */
    uint64_t asked;
} Ended;

typedef struct Rotation {
    Daemon *daemon;
    size_t n;
    Ended ended[];
} Rotation;

static bool method_rotate_is_finished(const Daemon *daemon, const Ended *ended) {
    const SessionEntry *entry = session_table_find(daemon->sessions, ended->session);

    return !entry || !entry->session || entry->since_real_ns != ended->since_real_ns ||
           session_rotations(entry->session).finished >= ended->asked;
}

static bool method_rotate_check_rotated(void *userdata, Call *call) {
    Rotation *rotation = userdata;
    json_t *paths;

    for (size_t i = 0; i < rotation->n; i++)
        if (!method_rotate_is_finished(rotation->daemon, &rotation->ended[i]))
            return false;
    paths = json_array();
    for (size_t i = 0; i < rotation->n; i++)
        value_append(&paths, answer_text(rotation->ended[i].path));
    (void)call_reply(call, json_pack("{s:o}", "segments", paths));
    return true;
}

/* 1: one more segment is ending; 0: there is nothing to end; -EBUSY: its writer is behind. */
static int method_rotate_rotate(Daemon *daemon, SessionEntry *entry, Ended *ret) {
    ClockAnchor clock = clock_anchor_now();
    uint64_t before = session_rotations(entry->session).asked;
    int r;

    if (!session_has_segment(entry->session))
        return 0;
    snprintf(ret->path, sizeof(ret->path), "%s", session_path(entry->session));
    memcpy(ret->session, entry->config.name, sizeof(ret->session));
    ret->since_real_ns = entry->since_real_ns;
    ret->asked = before + 1;
    if (!session_may_rotate(entry->session, ROTATE_ASKED, &clock)) {
        session_ask_rotation(entry->session);
        return 1;
    }
    r = daemon_rotate(daemon, entry, ROTATE_ASKED, &clock);
    if (r < 0)
        return r;
    return session_rotations(entry->session).asked > before ? 1 : -EBUSY;
}

/* Rotates one session, or all that record. */
static int method_rotate_all(Daemon *daemon, SessionEntry *only, Rotation *rotation) {
    SessionEntry *entry;
    int r = daemon_drain(daemon);

    for (size_t at = 0; r >= 0 && (entry = session_table_next(daemon->sessions, &at));) {
        if (only && entry != only)
            continue;
        r = method_rotate_rotate(daemon, entry, &rotation->ended[rotation->n]);
        rotation->n += r > 0;
    }
    return MIN(r, 0);
}

int method_rotate(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    SessionEntry *only = NULL;
    Rotation *rotation;
    const char *name;
    int r;

    if (ask_text(call, "session", &name)) {
        only = method_session(daemon, call);
        if (!only)
            return 0;
        if (!session_entry_records(only) || !session_has_segment(only->session))
            return method_fail_not_active(call, only);
    }
    rotation = calloc(1, sizeof(*rotation) + session_table_count(daemon->sessions) * sizeof(Ended));
    if (!rotation)
        return -ENOMEM;
    rotation->daemon = daemon;
    r = method_rotate_all(daemon, only, rotation);
    if (r < 0) {
        free(rotation);
        return r == -EBUSY ? call_fail_busy(call) : r;
    }
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.check = method_rotate_check_rotated,
                                    .release = free,
                                    .userdata = rotation});
}
