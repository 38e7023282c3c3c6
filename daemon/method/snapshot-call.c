/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/plan/cpu-list.h"
#include "method/method-private.h"
#include "method/snapshot-call.h"
#include "store/manifest/manifest.h"
#include "util/text.h"

/*
 * Parses the parameters of Snapshot(). Words and limits are those of the configuration, names must
 * match one pattern, and no text becomes part of a path unchecked.
 */

enum { FILTERS_MAX = 256, PID_MAX = 1 << 22 };

#define SNAPSHOT_NAME_RULE                                                                         \
    "a name has letters, digits, '.', '_' and '-', at most 64, and begins with a letter or digit"

void snapshot_call_done(SnapshotCall *asked) {
    free((void *)asked->filter.pids);
    free((void *)asked->filter.tids);
    free((void *)asked->filter.comms);
    free((void *)asked->filter.cgroups);
    free((void *)asked->filter.units);
    asked->filter = (SnapshotFilter){};
}

typedef struct SpanRow {
    const char *name;
    uint64_t *value;
    bool *has;
} SpanRow;

static int snapshot_call_take_times(Call *call, SnapshotCall *asked) {
    const SpanRow rows[] = {{"sinceUsec", &asked->since_ns, &asked->has_since},
                            {"untilUsec", &asked->until_ns, &asked->has_until},
                            {"lastUsec", &asked->last_ns, &asked->has_last},
                            {"atUsec", &asked->at_ns, &asked->has_at},
                            {"followUpUsec", &asked->follow_up_ns, &asked->has_follow_up}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = ask_span(call, rows[i].name, rows[i].value);

        if (r < 0)
            return method_ended(call_fail_parameter(call, rows[i].name, ASK_TIME));
        *rows[i].has = r > 0;
    }
    if (asked->has_last && asked->last_ns == 0)
        return method_ended(call_fail_parameter(call, "lastUsec", "it is 0"));
    if (asked->has_last && (asked->has_since || asked->has_until))
        return method_ended(
            call_fail_parameter(call, "lastUsec", "it excludes a start and an end"));
    if (asked->has_follow_up && asked->has_until)
        return method_ended(call_fail_parameter(call, "followUpUsec", "it excludes an end"));
    if (asked->has_since && asked->has_until && asked->until_ns <= asked->since_ns)
        return method_ended(
            call_fail_parameter(call, "untilUsec", "it is not after the start of the window"));
    return 0;
}

static bool snapshot_call_parse_key(const char *key, const char *value, SessionConfig *config) {
    const ConfigKey *row = config_key("Session", key);

    return row->parse(row, value, config) == 0;
}

static int snapshot_call_take_format(Daemon *daemon, Call *call, SnapshotCall *asked) {
    const SessionEntry *entry = session_table_find(daemon->sessions, asked->session);
    SessionConfig config;
    const char *text;

    config_session_defaults(&config, "default");
    if (entry)
        config.zstd_level = entry->config.zstd_level;
    if (ask_text(call, "layout", &text) && !snapshot_call_parse_key("Layout", text, &config))
        return method_ended(
            call_fail_parameter(call, "layout", "it is neither file nor directory"));
    asked->keep_frames = !ask_text(call, "compress", &text);
    if (!asked->keep_frames && !snapshot_call_parse_key("Compress", text, &config))
        return method_ended(call_fail_parameter(
            call, "compress", "it is neither none nor zstd, with a level from 1 to 22"));
    asked->layout = config.layout;
    asked->zstd_level = config.zstd_level;
    return 0;
}

/* A name may be literal, and a control group may be called "a\x2db.slice", or escaped as we print
 * it. Search for both. */
static int snapshot_call_take_texts(Call *call, const char *name, const char *const **ret,
                                    size_t *ret_n) {
    json_t *list = json_object_get(call_parameters(call), name), *value;
    size_t i, n = json_array_size(list), bytes = 0;
    const char **texts;
    char *room;

    if (n > FILTERS_MAX)
        return method_ended(call_fail_parameter(call, name, "it has more than 256 names"));
    *ret = NULL;
    *ret_n = 0;
    if (n == 0)
        return 0;
    json_array_foreach(list, i, value) bytes += json_string_length(value) + 1;
    texts = malloc(2 * n * sizeof(*texts) + bytes);
    if (!texts)
        return -ENOMEM;
    room = (char *)(texts + 2 * n);
    json_array_foreach(list, i, value) {
        texts[(*ret_n)++] = json_string_value(value);
        text_unescape(json_string_value(value), room);
        if (strcmp(room, json_string_value(value)) != 0)
            texts[(*ret_n)++] = room;
        room += strlen(room) + 1;
    }
    *ret = texts;
    return 0;
}

static int snapshot_call_take_ids(Call *call, const char *name, const uint32_t **ret,
                                  size_t *ret_n) {
    json_t *list = json_object_get(call_parameters(call), name), *value;
    size_t i, n = json_array_size(list);
    uint32_t *ids;

    if (n > FILTERS_MAX)
        return method_ended(call_fail_parameter(call, name, "it has more than 256 ids"));
    ids = n > 0 ? calloc(n, sizeof(*ids)) : NULL;
    if (n > 0 && !ids)
        return -ENOMEM;
    *ret = ids;
    *ret_n = n;
    json_array_foreach(list, i, value) {
        json_int_t id = json_integer_value(value);

        if (id < 0 || id > PID_MAX)
            return method_ended(
                call_fail_parameter(call, name, "a process or thread id is at most 4194304"));
        ids[i] = (uint32_t)id;
    }
    return 0;
}

static int snapshot_call_take_cpus(Call *call, SnapshotFilter *filter) {
    CpuList cpus = {};
    const char *text;
    int r;

    if (!ask_text(call, "cpus", &text))
        return 0;
    r = cpu_list_parse(text, &cpus);
    if (r < 0 || cpus.n == 0 || cpus.cpus[cpus.n - 1] >= MANIFEST_CPUS_MAX) {
        cpu_list_done(&cpus);
        return r == -ENOMEM ? r
                            : method_ended(call_fail_parameter(
                                  call, "cpus", "it is no list of CPUs, such as 0-3,8"));
    }
    filter->by_cpu = true;
    for (size_t i = 0; i < cpus.n; i++)
        filter->cpus[cpus.cpus[i] / 8] |= (uint8_t)(1 << cpus.cpus[i] % 8);
    cpu_list_done(&cpus);
    return 0;
}

static int snapshot_call_take_names(Daemon *daemon, Call *call, SnapshotCall *asked) {
    const char *session = "default", *reason = "";
    SnapshotInfo info;

    (void)ask_text(call, "session", &session);
    if (!config_name_is_valid(session))
        return method_ended(method_fail_no_session(daemon, call, "NoSuchSession", session));
    snprintf(asked->session, sizeof(asked->session), "%s", session);
    (void)ask_text(call, "reason", &reason);
    if (strlen(reason) >= sizeof(asked->reason))
        return method_ended(call_fail_parameter(call, "reason", "it has more than 255 bytes"));
    text_unescape(reason, asked->reason);
    if (!ask_text(call, "name", &asked->name))
        return 0;
    if (!snapshot_name_is_valid(asked->name))
        return method_ended(call_fail_parameter(call, "name", SNAPSHOT_NAME_RULE));
    if (snapshot_find(daemon->snapshots, asked->name, &info) == 0)
        return method_ended(call_fail(call, "SnapshotExists",
                                      json_pack("{s:o}", "name", answer_echo(asked->name))));
    return 0;
}

int snapshot_call_take(Daemon *daemon, Call *call, SnapshotCall *ret) {
    int r = snapshot_call_take_names(daemon, call, ret);

    /* A wrong parameter has ended the call. */
    if (r != 0)
        return r;
    ret->pin = ask_flag(call, "pin");
    ret->transient = ask_flag(call, "transient");
    r = snapshot_call_take_times(call, ret);
    if (r == 0)
        r = snapshot_call_take_format(daemon, call, ret);
    if (r == 0)
        r = snapshot_call_take_ids(call, "pids", &ret->filter.pids, &ret->filter.n_pids);
    if (r == 0)
        r = snapshot_call_take_ids(call, "tids", &ret->filter.tids, &ret->filter.n_tids);
    if (r == 0)
        r = snapshot_call_take_texts(call, "comms", &ret->filter.comms, &ret->filter.n_comms);
    if (r == 0)
        r = snapshot_call_take_texts(call, "cgroups", &ret->filter.cgroups, &ret->filter.n_cgroups);
    if (r == 0)
        r = snapshot_call_take_texts(call, "units", &ret->filter.units, &ret->filter.n_units);
    return r == 0 ? snapshot_call_take_cpus(call, &ret->filter) : r;
}
