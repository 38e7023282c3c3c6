/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "method-private.h"
#include "protocol/value.h"
#include "snapshot-job.h"
#include "util/log.h"

/* Snapshots that are there, and the answer of one that was made. */

static json_t *files_json(const SnapshotInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; i < info->n_files; i++) {
        char name[16];

        snapshot_file_name(info, i, name);
        value_append(&list, json_string(name));
    }
    return list;
}

static json_t *partial_json(const SnapshotInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; i < info->n_partial; i++)
        value_append(&list, answer_text(info->partial[i]));
    return list;
}

json_t *snapshot_json(const SnapshotInfo *info) {
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "name", answer_text(info->name), "path", answer_text(info->path), "session",
        answer_text(info->session), "layout",
        info->layout == LAYOUT_DIRECTORY ? "directory" : "file", "sensitive", info->sensitive,
        "pinned", info->pinned, "reason", answer_text(info->reason), "uid", answer_count(info->uid),
        "createdUsec", answer_count(info->created_ns / 1000), "expiresUsec",
        answer_time(info->expires_ns), "sinceUsec", answer_time(info->since_ns), "untilUsec",
        answer_time(info->until_ns), "samples", answer_count(info->samples), "lost",
        answer_count(info->lost), "bytes", answer_count(info->bytes), "partial", partial_json(info),
        "files", files_json(info));
}

static int add(void *userdata, const SnapshotInfo *info) {
    return json_array_append_new(userdata, json_pack("{s:o}", "snapshot", snapshot_json(info)));
}

static int fail_not_found(Call *call, const char *name) {
    return call_fail(call, "NoSuchSnapshot", json_pack("{s:o}", "name", answer_echo(name)));
}

/* Another's transient one is nobody's business. */
int method_find_snapshot(Daemon *daemon, const Call *call, const char *name, SnapshotInfo *ret) {
    const Peer *peer = call_peer(call);
    int r = snapshot_name_is_valid(name) ? snapshot_find(daemon->snapshots, name, ret) : -ENOENT;

    if (r == 0 && ret->transient && ret->uid != peer->uid && peer->right < RIGHT_ADMIN)
        return -ENOENT;
    return r;
}

int method_list_snapshots(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    SnapshotInfo info;
    json_t *list;
    const char *name;
    int r;

    if (ask_text(call, "name", &name)) {
        if (method_find_snapshot(daemon, call, name, &info) < 0)
            return fail_not_found(call, name);
        return call_reply(call, json_pack("{s:o}", "snapshot", snapshot_json(&info)));
    }
    list = json_array();
    r = snapshot_each(daemon->snapshots, add, list);
    if (r >= 0)
        return call_stream_array(call, list);
    json_decref(list);
    return r;
}

/* His own, or any for administrators. NULL: the call was ended. */
static const char *changeable(Daemon *daemon, Call *call) {
    const Peer *peer = call_peer(call);
    const char *name = "";
    SnapshotInfo info;

    (void)ask_text(call, "name", &name);
    if (method_find_snapshot(daemon, call, name, &info) < 0) {
        (void)fail_not_found(call, name);
        return NULL;
    }
    if (info.uid != peer->uid && peer->right < RIGHT_ADMIN) {
        (void)call_fail_permission(call);
        return NULL;
    }
    return name;
}

int method_remove_snapshot(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const char *name = changeable(daemon, call);
    uint64_t bytes = 0;
    int r;

    if (!name)
        return 0;
    /* Until it is read it takes its room, which would no longer count as his. */
    if (call_peer(call)->right < RIGHT_ADMIN && method_is_read(daemon, name))
        return call_fail_busy(call);
    r = snapshot_remove(daemon->snapshots, name, &bytes);
    if (r < 0)
        return r == -ENOENT ? fail_not_found(call, name) : call_fail_reason(call, r, NULL);
    log_struct(LOG_LEVEL_INFO, 0,
               LOG_FIELDS({"PROFD_EVENT", "snapshot-removed"}, {"PROFD_SNAPSHOT", name}),
               "Removed snapshot '%s'", name);
    monitor_publish(daemon->monitor,
                    &(MonitorEvent){.event = "removed", .text = "a snapshot", .path = name});
    return call_reply(call, json_pack("{s:o}", "bytes", answer_count(bytes)));
}

int method_pin_snapshot(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const char *name = changeable(daemon, call);
    int r;

    if (!name)
        return 0;
    r = snapshot_set_pinned(daemon->snapshots, name, ask_flag(call, "pinned"));
    if (r < 0)
        return r == -ENOENT ? fail_not_found(call, name) : call_fail_reason(call, r, NULL);
    return call_reply(call, json_object());
}
