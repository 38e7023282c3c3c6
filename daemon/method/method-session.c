/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "capture/plan/check.h"
#include "method/method-private.h"
#include "protocol/value.h"
#include "util/clock.h"

/*
 * Starts, pauses and stops sessions for clients. Start() takes keys of the configuration, with the
 * same words and limits; if an event cannot be opened, the reply has the sentence that is logged.
 * Start() replies when the disk has answered, Stop() when the last segment is finished.
 */

enum { SETTINGS_MAX = 64 };

static json_t *method_session_wrap(const Daemon *daemon, const SessionEntry *entry) {
    return json_pack("{s:o}", "session", session_json(daemon, entry));
}

int method_list_sessions(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const char *name;
    json_t *list;

    if (ask_text(call, "session", &name)) {
        SessionEntry *entry = method_session(daemon, call);

        return entry ? call_reply(call, method_session_wrap(daemon, entry)) : 0;
    }
    list = json_array();
    for (size_t i = 0; i < session_table_count(daemon->sessions); i++)
        value_append(&list, method_session_wrap(daemon, session_table_at(daemon->sessions, i)));
    return call_stream_array(call, list);
}

static int method_session_fail_setting(Call *call, const char *key, const char *value,
                                       const char *expected) {
    return call_fail(call, "BadSetting",
                     json_pack("{s:o, s:o, s:o}", "key", answer_echo(key), "value",
                               answer_echo(value), "expected", answer_text(expected)));
}

/* Checks what depends on the existing sessions. A MethodStep. */
static int method_session_check_config(Call *call, const SessionConfig *config) {
    if (!config->enabled)
        return method_ended(method_session_fail_setting(call, "Enabled", "no",
                                                        "yes for a session that is started"));
    return 0;
}

/* `name` is the group that was not found. */
static int method_session_fail_no_group(Call *call, const char *error, const char *key,
                                        const char *name, const NearNames *near) {
    json_t *parameters =
        json_pack("{s:O, s:o}", "session", json_object_get(call_parameters(call), "session"), key,
                  answer_echo(name));
    answer_near(&parameters, near);
    return call_fail(call, error, parameters);
}

static void method_session_on_near_groups(void *userdata _unused_, Call *call,
                                          const GroupsFound *found) {
    json_t *settings = json_object_get(call_parameters(call), "settings");
    const char *cgroup = json_string_value(json_object_get(settings, "Cgroup"));

    (void)method_session_fail_no_group(call, "NoSuchCgroup", "cgroup", cgroup ?: "", &found->near);
}

/* The scan thread walks the tree of groups. */
static int method_session_search(Daemon *daemon, Call *call, const char *wanted, bool by_unit,
                                 GroupsFoundCallback on_found) {
    int r = group_search_add(daemon->searches, call, wanted, by_unit, on_found, daemon);

    if (r == 0)
        tracker_walk_groups(daemon->tracker);
    return r;
}

/* A configured session waits for its control group; a missing group in Start() is probably a
 * typo. */
static int method_session_check_group(Daemon *daemon, Call *call, const SessionConfig *config) {
    int r;

    if (!config->cgroup[0] || sampler_group_exists(daemon->sampler, config->cgroup))
        return 0;
    r = method_session_search(daemon, call, config->cgroup, false, method_session_on_near_groups);
    return method_ended(r);
}

/* A configuration file may be shared by hosts of many sizes, but Start() refers to this host. */
static int method_session_check_cpus(Call *call, const SessionConfig *config) {
    unsigned absent;

    if (check_has_cpus(config->cpus, &absent))
        return 0;
    return method_ended(call_fail(call, "NoSuchCpu",
                                  json_pack("{s:O, s:o}", "session",
                                            json_object_get(call_parameters(call), "session"),
                                            "cpu", answer_count(absent))));
}

static bool method_session_are_there(const uint32_t *ids, size_t n, uint32_t *ret_absent) {
    for (size_t i = 0; i < n; i++)
        if (kill((pid_t)ids[i], 0) < 0 && errno == ESRCH) {
            *ret_absent = ids[i];
            return false;
        }
    return true;
}

/* A session of several processes records those that are left, but a wrong number is a mistake. */
static int method_session_check_processes(Call *call, const SessionConfig *config) {
    uint32_t absent;

    if (method_session_are_there(config->pids, config->n_pids, &absent) &&
        method_session_are_there(config->tids, config->n_tids, &absent))
        return 0;
    return method_ended(call_fail(call, "NoSuchProcess",
                                  json_pack("{s:O, s:o}", "session",
                                            json_object_get(call_parameters(call), "session"),
                                            "pid", answer_count(absent))));
}

static size_t method_session_take_settings(json_t *settings, ConfigSetting ret[SETTINGS_MAX]) {
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach(settings, key, value) {
        if (n < SETTINGS_MAX)
            ret[n] = (ConfigSetting){.key = key, .value = json_string_value(value)};
        n++;
    }
    return n;
}

/* Adds an entry for a new session. A MethodStep. */
static int method_session_make(Daemon *daemon, Call *call, const char *name, json_t *settings,
                               SessionEntry **ret) {
    ConfigSetting list[SETTINGS_MAX];
    size_t n = method_session_take_settings(settings, list);
    SessionConfig config;
    ConfigFault fault;
    int r;

    if (n > SETTINGS_MAX)
        return method_ended(call_fail_parameter(call, "settings", "it has more than 64 keys"));
    r = config_make_session(daemon->config, name, list, n, &config, &fault);
    if (r == -EINVAL)
        return method_ended(method_session_fail_setting(call, list[fault.setting].key,
                                                        list[fault.setting].value, fault.expected));
    if (r < 0)
        return r;
    r = method_session_check_config(call, &config);
    if (r == 0)
        r = method_session_check_cpus(call, &config);
    if (r == 0)
        r = method_session_check_processes(call, &config);
    if (r != 0)
        return r;
    /* A mistyped name must not start to record the whole machine. */
    if (!json_object_get(settings, "Event"))
        return method_ended(method_fail_no_session(daemon, call, "NotConfigured", name));
    daemon_settle_group(daemon, &config);
    r = method_session_check_group(daemon, call, &config);
    return r != 0 ? r : session_table_add(daemon->sessions, &config, true, settings, ret);
}

static int method_session_fail_begin(Daemon *daemon, Call *call, const SessionEntry *entry) {
    int error = entry->failed_error;
    const char *events = entry->config.events;

    if (entry->failed_part == SESSION_STORE && (error == -ENOSPC || error == -EDQUOT))
        return call_fail(call, "DiskFull",
                         json_pack("{s:o}", "path", answer_text(daemon->store_path)));
    if (entry->failed_part == SESSION_STORE || error == -EMFILE || error == -ENFILE ||
        error == -ENOMEM || error == -EPIPE)
        return call_fail_reason(call, error, entry->error);
    return call_fail(
        call, "EventUnsupported",
        json_pack("{s:o, s:o}", "event", answer_echo(events), "reason", answer_text(entry->error)));
}

/* Finds or adds the entry to start. A MethodStep. */
static int method_session_find_or_make(Daemon *daemon, Call *call, SessionEntry **ret) {
    json_t *settings = json_object_get(call_parameters(call), "settings");
    const char *name = "";
    SessionEntry *entry;

    (void)ask_text(call, "session", &name);
    if (!config_name_is_valid(name))
        return method_ended(call_fail_parameter(call, "session", ASK_NAME));
    entry = session_table_find(daemon->sessions, name);
    /* Start() with settings replaces the ended session of that name. */
    if (entry && session_entry_has_ended(entry) && json_object_size(settings) > 0) {
        session_table_remove(daemon->sessions, entry);
        entry = NULL;
    }
    if (entry && (entry->session || json_object_size(settings) > 0 ||
                  (entry->awaits && entry->state != SESSION_FAILED)))
        return method_ended(call_fail_session(call, "SessionExists", name));
    if (session_table_n_open(daemon->sessions) >= daemon->config->max_sessions)
        return method_ended(
            call_fail(call, "TooManySessions",
                      json_pack("{s:o}", "limit", answer_count(daemon->config->max_sessions))));
    if (!entry)
        return method_session_make(daemon, call, name, settings, ret);
    *ret = entry;
    return 0;
}

typedef struct Starting {
    Daemon *daemon;
    char name[CONFIG_NAME_MAX];
} Starting;

/* Remove a session that failed to start: nobody could ask for its error after this call. */
static void method_session_starting_free(void *userdata) {
    Starting *starting = userdata;
    SessionEntry *entry = session_table_find(starting->daemon->sessions, starting->name);

    if (entry && entry->runtime && entry->state == SESSION_FAILED)
        session_table_remove(starting->daemon->sessions, entry);
    free(starting);
}

static bool method_session_check_started(void *userdata, Call *call) {
    const Starting *starting = userdata;
    Daemon *daemon = starting->daemon;
    const SessionEntry *entry = session_table_find(daemon->sessions, starting->name);

    if (entry && entry->awaits)
        return false;
    if (entry && entry->state == SESSION_FAILED) {
        (void)method_session_fail_begin(daemon, call, entry);
        return true;
    }
    if (!entry || !session_entry_records(entry)) {
        (void)call_fail_reason(call, -ECANCELED, "It was stopped before it began");
        return true;
    }
    /* The session knows by now which events it lacks. */
    daemon_update_status(daemon, clock_monotonic_ns());
    (void)call_reply(call, method_session_wrap(daemon, entry));
    return true;
}

static int method_session_begin(Daemon *daemon, SessionEntry *entry, uint64_t duration_ns) {
    int r = daemon_end_sweep(daemon);

    entry->stop_at_ns = 0;
    entry->duration_ns = duration_ns;
    if (r == 0)
        (void)session_table_begin(daemon->sessions, entry, false);
    return r;
}

static int method_session_start(Daemon *daemon, Call *call) {
    uint64_t duration_ns = 0;
    SessionEntry *entry = NULL;
    Starting *starting;
    int r = method_session_find_or_make(daemon, call, &entry);

    if (r != 0)
        return MIN(r, 0);
    starting = calloc(1, sizeof(*starting));
    if (!starting)
        return -ENOMEM;
    starting->daemon = daemon;
    memcpy(starting->name, entry->config.name, sizeof(starting->name));
    (void)ask_span(call, "durationUsec", &duration_ns);
    r = method_session_begin(daemon, entry, duration_ns);
    if (r < 0) {
        method_session_starting_free(starting);
        return r;
    }
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.check = method_session_check_started,
                                    .release = method_session_starting_free,
                                    .userdata = starting});
}

static int method_session_fail_ambiguous(Call *call, const char *unit, const GroupsFound *found) {
    json_t *list = json_array();

    for (size_t i = 0; i < found->n; i++)
        value_append(&list, answer_text(found->paths[i]));
    return call_fail(call, "AmbiguousUnit",
                     json_pack("{s:O, s:o, s:o}", "session",
                               json_object_get(call_parameters(call), "session"), "unit",
                               answer_echo(unit), "cgroups", list));
}

/* From here on the session is the same as one that was started with the path of the group. The path
 * is escaped where JSON cannot hold its bytes. */
static int method_session_start_in_group(Daemon *daemon, Call *call, const char *path) {
    json_t *parameters = call_parameters(call);
    json_t *settings = json_object_get(parameters, "settings");

    if (!json_is_object(settings)) {
        settings = json_object();
        if (json_object_set_new(parameters, "settings", settings) < 0)
            return -ENOMEM;
    }
    if (json_object_set_new(settings, "Cgroup", json_string(path) ?: answer_text(path)) < 0)
        return -ENOMEM;
    return method_session_start(daemon, call);
}

static void method_session_on_unit_groups(void *userdata, Call *call, const GroupsFound *found) {
    const char *unit = "";
    int r;

    (void)ask_text(call, "unit", &unit);
    if (found->n == 0)
        (void)method_session_fail_no_group(call, "NoSuchUnit", "unit", unit, &found->near);
    else if (found->n > 1)
        (void)method_session_fail_ambiguous(call, unit, found);
    else {
        r = method_session_start_in_group(userdata, call, found->paths[0]);
        if (r < 0)
            (void)call_fail_reason(call, r, NULL);
    }
}

int method_start(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    uint64_t duration_ns = 0;
    const char *unit;
    int r = ask_span(call, "durationUsec", &duration_ns);

    if (r < 0 || (r > 0 && duration_ns == 0))
        return call_fail_parameter(call, "durationUsec", ASK_SPAN);
    if (!ask_text(call, "unit", &unit))
        return method_session_start(daemon, call);
    if (json_object_get(json_object_get(call_parameters(call), "settings"), "Cgroup"))
        return call_fail_parameter(call, "unit", "it excludes a control group");
    if (!*unit)
        return call_fail_parameter(call, "unit", "it is empty");
    return method_session_search(daemon, call, unit, true, method_session_on_unit_groups);
}

typedef struct Stopping {
    Daemon *daemon;
    char name[CONFIG_NAME_MAX];
} Stopping;

static bool method_session_check_stopped(void *userdata, Call *call) {
    const Stopping *stopping = userdata;
    const SessionEntry *entry = session_table_find(stopping->daemon->sessions, stopping->name);

    if (entry && entry->session)
        return false;
    if (entry)
        (void)call_reply(call, method_session_wrap(stopping->daemon, entry));
    else
        (void)call_fail_session(call, "NoSuchSession", stopping->name);
    return true;
}

static int method_session_answer_when_stopped(Daemon *daemon, Call *call,
                                              const SessionEntry *entry) {
    Stopping *stopping = calloc(1, sizeof(*stopping));

    if (!stopping)
        return -ENOMEM;
    stopping->daemon = daemon;
    memcpy(stopping->name, entry->config.name, sizeof(stopping->name));
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.check = method_session_check_stopped,
                                    .release = free,
                                    .userdata = stopping});
}

int method_stop(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    SessionEntry *entry = method_session(daemon, call);
    int r = 0;

    if (!entry)
        return 0;
    if (entry->state == SESSION_FAILED || session_entry_is_opening(entry) ||
        session_entry_has_ended(entry)) {
        session_table_abandon(daemon->sessions, entry);
        r = call_reply(call, method_session_wrap(daemon, entry));
        session_table_forget_ended(daemon->sessions);
        daemon_remember(daemon);
        return r;
    }
    if (!entry->session)
        return method_fail_not_active(call, entry);
    r = session_table_end(daemon->sessions, entry, NEXT_NOTHING);
    if (r < 0)
        return r;
    daemon_remember(daemon);
    return method_session_answer_when_stopped(daemon, call, entry);
}

static int method_session_set_paused(Daemon *daemon, Call *call, bool paused) {
    SessionEntry *entry = method_session(daemon, call);
    int r = 0;

    if (!entry)
        return 0;
    if (!session_entry_records(entry))
        return method_fail_not_active(call, entry);
    if ((entry->state == SESSION_PAUSED) != paused)
        r = (paused ? session_table_pause : session_table_resume)(daemon->sessions, entry);
    if (r < 0)
        return call_fail_reason(call, r, NULL);
    daemon_remember(daemon);
    /* Samples from before the pause must not wait for those after it. */
    r = paused ? daemon_sweep_soon(daemon) : 0;
    return r < 0 ? r : call_reply(call, json_object());
}

int method_pause(void *userdata, Call *call) {
    return method_session_set_paused(userdata, call, true);
}

int method_resume(void *userdata, Call *call) {
    return method_session_set_paused(userdata, call, false);
}
