/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "protocol/value.h"
#include "util/log.h"

/* Lists, pins and removes snapshots, and describes the one that a Snapshot() call made. */

static json_t *method_snapshot_partial_json(const SnapshotInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; i < info->n_partial; i++)
        value_append(&list, answer_text(info->partial[i]));
    return list;
}

json_t *snapshot_json(const SnapshotInfo *info) {
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o}",
        "name", answer_text(info->name), "path", answer_text(info->path), "session",
        answer_text(info->session), "layout",
        info->layout == LAYOUT_DIRECTORY ? "directory" : "file", "sensitive", info->sensitive,
        "pinned", info->pinned, "reason", answer_text(info->reason), "uid", answer_count(info->uid),
        "createdUsec", answer_count(info->created_ns / 1000), "expiresUsec",
        answer_time(info->expires_ns), "sinceUsec", answer_time(info->since_ns), "untilUsec",
        answer_time(info->until_ns), "samples", answer_count(info->samples), "lost",
        answer_count(info->lost), "bytes", answer_count(info->bytes), "partial",
        method_snapshot_partial_json(info), "coverage", coverage_json(&info->coverage), "files",
        method_files_json(info->layout, info->n_files), "unidentified",
        answer_count(info->unidentified));
}

static int method_snapshot_add(void *userdata, const SnapshotInfo *info) {
    return json_array_append_new(userdata, json_pack("{s:o}", "snapshot", snapshot_json(info)));
}

int method_list_snapshots(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    SnapshotInfo info;
    json_t *list;
    const char *name;
    int r;

    if (ask_text(call, "name", &name)) {
        if (method_find_snapshot(daemon, call, name, &info) < 0)
            return method_fail_no_snapshot(daemon, call, name);
        return call_reply(call, json_pack("{s:o}", "snapshot", snapshot_json(&info)));
    }
    list = json_array();
    r = snapshot_each(daemon->snapshots, method_snapshot_add, list);
    if (r >= 0)
        return call_stream_array(call, list);
    json_decref(list);
    return r;
}

/* The named snapshot, if the caller owns it or is an administrator. NULL: the call was ended. */
static const char *method_snapshot_changeable(Daemon *daemon, Call *call) {
    const Peer *peer = call_peer(call);
    const char *name = "";
    SnapshotInfo info;

    (void)ask_text(call, "name", &name);
    if (method_find_snapshot(daemon, call, name, &info) < 0) {
        (void)method_fail_no_snapshot(daemon, call, name);
        return NULL;
    }
    if (info.uid != peer->uid && peer->right < RIGHT_ADMIN) {
        (void)call_fail_permission(call);
        return NULL;
    }
    return name;
}

/* A RemoveSnapshot() or PinSnapshot() call that waits for the disk. */
typedef struct Changing {
    Daemon *daemon;
    Errand *errand;
    char name[SNAPSHOT_NAME_MAX];
    bool removes;
    int error;
    uint64_t bytes;
} Changing;

/* The change is done; the client may be gone. */
static void method_snapshot_on_changed(void *userdata, int error, uint64_t bytes) {
    Changing *changing = userdata;

    changing->error = error;
    changing->bytes = bytes;
    if (error == 0 && changing->removes) {
        log_struct(
            LOG_LEVEL_INFO, 0,
            LOG_FIELDS({"PROFD_EVENT", "snapshot-removed"}, {"PROFD_SNAPSHOT", changing->name}),
            "Removed snapshot '%s'", changing->name);
        monitor_publish(
            changing->daemon->monitor,
            &(MonitorEvent){.event = "removed", .text = "a snapshot", .path = changing->name});
    }
    errand_done(changing->errand);
}

static int method_snapshot_fail_change(const Daemon *daemon, Call *call, const char *name,
                                       int error) {
    if (error == -ENOENT)
        return method_fail_no_snapshot(daemon, call, name);
    return error == -EBUSY ? call_fail_busy(call) : call_fail_reason(call, error, NULL);
}

static void method_snapshot_answer_changed(void *userdata, Call *call) {
    const Changing *changing = userdata;

    if (changing->error < 0)
        (void)method_snapshot_fail_change(changing->daemon, call, changing->name, changing->error);
    else
        (void)call_reply(call, changing->removes
                                   ? json_pack("{s:o}", "bytes", answer_count(changing->bytes))
                                   : json_object());
}

static int method_snapshot_new_changing(Daemon *daemon, const char *name, bool removes,
                                        Changing **ret) {
    Changing *changing = calloc(1, sizeof(*changing));
    int r;

    if (!changing)
        return -ENOMEM;
    *changing = (Changing){.daemon = daemon, .removes = removes};
    snprintf(changing->name, sizeof(changing->name), "%s", name);
    r = errand_new(daemon->waits,
                   &(ErrandOptions){.answer = method_snapshot_answer_changed,
                                    .release = free,
                                    .userdata = changing},
                   &changing->errand);
    if (r == 0)
        *ret = changing;
    return r;
}

/* `begun`: 0 if the engine works on it, or a negative errno. */
static int method_snapshot_answer_later(Call *call, Changing *changing, int begun) {
    const Daemon *daemon = changing->daemon;
    char name[SNAPSHOT_NAME_MAX];

    if (begun == 0)
        return errand_wait(changing->errand, call);
    memcpy(name, changing->name, sizeof(name));
    errand_free(changing->errand);
    return method_snapshot_fail_change(daemon, call, name, begun);
}

static SnapshotAnswer method_snapshot_answer_of(const Call *call, Changing *changing) {
    return (SnapshotAnswer){.on_done = method_snapshot_on_changed,
                            .userdata = changing,
                            .privileged = call_peer(call)->right >= RIGHT_ADMIN};
}

int method_remove_snapshot(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const char *name = method_snapshot_changeable(daemon, call);
    Changing *changing;
    SnapshotAnswer answer;
    int r;

    if (!name)
        return 0;
    /* The space is in use until reading ends but would no longer count against the owner. */
    if (call_peer(call)->right < RIGHT_ADMIN && method_is_read(daemon, name))
        return call_fail_busy(call);
    r = method_snapshot_new_changing(daemon, name, true, &changing);
    if (r < 0)
        return r;
    answer = method_snapshot_answer_of(call, changing);
    return method_snapshot_answer_later(call, changing,
                                        snapshot_remove(daemon->snapshots, name, &answer));
}

int method_pin_snapshot(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const char *name = method_snapshot_changeable(daemon, call);
    Changing *changing;
    SnapshotAnswer answer;
    int r;

    if (!name)
        return 0;
    r = method_snapshot_new_changing(daemon, name, false, &changing);
    if (r < 0)
        return r;
    answer = method_snapshot_answer_of(call, changing);
    return method_snapshot_answer_later(
        call, changing,
        snapshot_set_pinned(daemon->snapshots, name, ask_flag(call, "pinned"), &answer));
}
