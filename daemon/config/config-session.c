/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>

#include "config/config-private.h"

/*
 * Makes a session from settings of a client: the same keys, words and limits as in a file; the
 * number of a setting takes the place of a line number.
 */

static void config_session_on_problem(void *userdata, const char *path _unused_, unsigned line,
                                      const char *problem) {
    ConfigFault *fault = userdata;

    if (fault->expected[0])
        return;
    fault->setting = line;
    snprintf(fault->expected, sizeof(fault->expected), "%s", problem);
}

static int config_session_take_setting(ConfigLoad *load, const char *section,
                                       const ConfigSetting *settings, size_t i,
                                       ConfigFault *fault) {
    const ConfigKey *key = config_key(CONFIG_SESSION, settings[i].key);
    const char *expected = "a key of [Session NAME] in profd.conf(5)",
               *near = config_table_near(config_table(), CONFIG_SESSION, settings[i].key);
    int r;

    fault->setting = i;
    r = key ? config_set(load->config, section, key->name, settings[i].value, &expected) : -ENOENT;
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        snprintf(fault->expected, sizeof(fault->expected), "%s%s%s%s", expected,
                 !key && near ? ", did you mean " : "", !key && near ? near : "",
                 !key && near ? "=?" : "");
        return -EINVAL;
    }
    *config_load_origin(load, key, 0) = (ConfigOrigin){.path = "", .line = (unsigned)i};
    return 0;
}

static int config_session_take_settings(ConfigLoad *load, const char *name,
                                        const ConfigSetting *settings, size_t n,
                                        ConfigFault *fault) {
    char section[sizeof(CONFIG_SESSION) + 1 + CONFIG_NAME_MAX];
    int r = 0;

    snprintf(section, sizeof(section), CONFIG_SESSION " %s", name);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = config_session_take_setting(load, section, settings, i, fault);
    if (r < 0)
        return r;
    config_check_session(load, 0);
    return load->files.problems > 0 ? -EINVAL : 0;
}

int config_make_session(const Config *config, const char *name, const ConfigSetting *settings,
                        size_t n, SessionConfig *ret, ConfigFault *ret_fault) {
    SessionConfig session;
    Config around = *config;
    ConfigFault fault = {};
    ConfigLoad load = {.config = &around,
                       .files = {.on_problem = config_session_on_problem, .userdata = &fault}};
    int r;

    config_session_defaults(&session, name);
    around.sessions = &session;
    around.n_sessions = 1;
    load.origins = calloc(2 * config_table().n, sizeof(*load.origins));
    if (!load.origins)
        return -ENOMEM;
    r = config_session_take_settings(&load, name, settings, n, &fault);
    free(load.origins);
    if (r == -EINVAL)
        *ret_fault = fault;
    if (r == 0) {
        session.runtime = true;
        *ret = session;
    }
    return r;
}
