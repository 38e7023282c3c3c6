/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "method/method-private.h"
#include "util/near.h"

/* Finds the session or snapshot that a call names, within what the caller may see. */

/* `field` is the field of the error that holds the name. */
static int method_lookup_fail_unknown(Call *call, const char *error, const char *field,
                                      const char *name, const NearNames *near) {
    json_t *parameters = json_pack("{s:o}", field, answer_echo(name));

    answer_near(&parameters, near);
    return call_fail(call, error, parameters);
}

int method_fail_no_session(const Daemon *daemon, Call *call, const char *error, const char *name) {
    NearNames near = {};

    for (size_t i = 0; i < session_table_count(daemon->sessions); i++) {
        const char *other = session_table_at(daemon->sessions, i)->config.name;

        near_offer(&near, other, near_distance(name, other));
    }
    return method_lookup_fail_unknown(call, error, "session", name, &near);
}

int method_fail_no_window(Call *call, const SnapshotFailure *failure) {
    return call_fail(call, "WindowUnavailable",
                     json_pack("{s:o, s:o, s:s}", "oldestUsec", answer_time(failure->oldest_ns),
                               "newestUsec", answer_time(failure->newest_ns), "reason",
                               pd_gap_reason_name(failure->reason)));
}

typedef struct SnapshotTypo {
    const char *name;
    NearNames near;
} SnapshotTypo;

static int method_lookup_offer_snapshot(void *userdata, const SnapshotInfo *info) {
    SnapshotTypo *typo = userdata;

    near_offer(&typo->near, info->name, near_distance(typo->name, info->name));
    return 0;
}

int method_fail_no_snapshot(const Daemon *daemon, Call *call, const char *name) {
    SnapshotTypo typo = {.name = name};

    (void)snapshot_each(daemon->snapshots, method_lookup_offer_snapshot, &typo);
    return method_lookup_fail_unknown(call, "NoSuchSnapshot", "name", name, &typo.near);
}

SessionEntry *method_session(Daemon *daemon, Call *call) {
    const char *name = "";
    SessionEntry *entry;

    (void)ask_text(call, "session", &name);
    entry = session_table_find(daemon->sessions, name);
    if (!entry)
        (void)method_fail_no_session(daemon, call, "NoSuchSession", name);
    return entry;
}

int method_fail_not_active(Call *call, const SessionEntry *entry) {
    return call_fail(call, "SessionNotActive",
                     json_pack("{s:s, s:s}", "session", entry->config.name, "state",
                               session_state_name(entry->state)));
}

/* A transient snapshot is visible to its owner only. */
int method_find_snapshot(Daemon *daemon, const Call *call, const char *name, SnapshotInfo *ret) {
    const Peer *peer = call_peer(call);
    int r = snapshot_name_is_valid(name) ? snapshot_find(daemon->snapshots, name, ret) : -ENOENT;

    if (r == 0 && ret->transient && ret->uid != peer->uid && peer->right < RIGHT_ADMIN)
        return -ENOENT;
    return r;
}
