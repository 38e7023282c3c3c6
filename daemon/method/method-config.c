/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "method/method-private.h"
#include "protocol/value.h"
#include "util/log.h"
#include "util/text.h"

/* Shows the configuration with the origin of each value, and reloads it. */

static json_t *method_config_value_json(const ConfigKey *key, const void *base) {
    _cleanup_(buffer_done) Buffer value = {};

    config_print(key, base, &value);
    text_putc(&value, '\0');
    return buffer_error(&value) < 0 ? NULL : answer_text((const char *)value.data);
}

static void method_config_add(json_t **list, const char *section, const ConfigKey *key,
                              const void *base, const char *source) {
    value_append(list, json_pack("{s:{s:s, s:s, s:o, s:o}}", "setting", "section", section, "key",
                                 key->name, "value", method_config_value_json(key, base), "source",
                                 answer_text(source)));
}

static void method_config_add_configured(json_t **list, const Config *config, const char *section,
                                         const ConfigKey *key, const void *base,
                                         const char *session) {
    ConfigOrigin origin = config_origin(config, key, session);
    char source[CONFIG_PATH_MAX + 16];

    snprintf(source, sizeof(source), "%s:%u", origin.path ? origin.path : "", origin.line);
    method_config_add(list, section, key, base, origin.path ? source : "default");
}

static void method_config_add_daemon(json_t **list, const Config *config) {
    ConfigTable table = config_table();

    for (size_t i = 0; i < table.n; i++)
        if (strcmp(table.keys[i].section, "Profd") == 0)
            method_config_add_configured(list, config, "Profd", &table.keys[i], config, NULL);
}

static void method_config_add_session(json_t **list, const Daemon *daemon,
                                      const SessionEntry *entry) {
    char section[sizeof("Session ") + CONFIG_NAME_MAX];
    ConfigTable table = config_table();

    snprintf(section, sizeof(section), "Session %s", entry->config.name);
    for (size_t i = 0; i < table.n; i++) {
        if (strcmp(table.keys[i].section, "Session") != 0)
            continue;
        if (!entry->runtime)
            method_config_add_configured(list, daemon->config, section, &table.keys[i],
                                         &entry->config, entry->config.name);
        else
            method_config_add(list, section, &table.keys[i], &entry->config,
                              json_object_get(entry->settings, table.keys[i].name) ? "Start()"
                                                                                   : "default");
    }
}

int method_describe(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    const SessionEntry *entry = NULL;
    const char *name;
    json_t *list;

    if (ask_text(call, "session", &name)) {
        entry = method_session(daemon, call);
        if (!entry)
            return 0;
    }
    list = json_array();
    if (entry)
        method_config_add_session(&list, daemon, entry);
    else
        method_config_add_daemon(&list, daemon->config);
    for (size_t i = 0; !entry && i < session_table_count(daemon->sessions); i++)
        method_config_add_session(&list, daemon, session_table_at(daemon->sessions, i));
    return call_stream_array(call, list);
}

/* Answers when the sessions that were restarted record again. */
static bool method_config_check_reloaded(void *userdata, Call *call) {
    json_t *problems;
    int r;

    if (!daemon_reload_is_done(userdata, &r, &problems))
        return false;
    if (r == -EINVAL)
        (void)call_fail(call, "ConfigInvalid", json_pack("{s:O}", "problems", problems));
    else if (r < 0)
        (void)call_fail_reason(call, r, NULL);
    else
        (void)call_reply(call, json_object());
    return true;
}

int method_reload(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    Reloading *reloading;
    int r = daemon_reload(daemon, &reloading);

    if (r < 0)
        return call_fail_reason(call, r, NULL);
    return waits_add(daemon->waits, call,
                     &(WaitOptions){.check = method_config_check_reloaded,
                                    .release = daemon_reload_release,
                                    .userdata = reloading});
}

int method_set_log_level(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    LogLevel before = log_level(), level;
    const char *name = "";

    (void)ask_text(call, "level", &name);
    if (log_level_from_name(name, &level) < 0)
        return call_fail_parameter(call, "level",
                                   "it is none of err, warning, notice, info and debug");
    log_set_level(level);
    daemon->log = (RuntimeLog){.is_set = true, .level = level};
    daemon_remember(daemon);
    return call_reply(call, json_pack("{s:s}", "previous", log_level_name(before)));
}
