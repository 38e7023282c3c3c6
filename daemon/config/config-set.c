/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/config-private.h"
#include "util/parse.h"

/*
 * Fills the structs: sets the defaults of the table, and keys by name. Sessions are searched
 * linearly, since there are few.
 */

void config_session_defaults(SessionConfig *ret, const char *name) {
    assert(config_name_is_valid(name));
    memset(ret, 0, sizeof(*ret));
    strcpy(ret->name, name);
    config_table_defaults(config_table(), CONFIG_SESSION, ret);
}

int config_new(Config **ret) {
    _cleanup_(config_freep) Config *config = calloc(1, sizeof(*config));
    SessionConfig *session;
    int r;

    if (!config)
        return -ENOMEM;
    config_table_defaults(config_table(), CONFIG_PROFD, config);
    r = config_need_session(config, CONFIG_DEFAULT_SESSION, &session);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(config);
    return 0;
}

Config *config_free(Config *config) {
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->n_paths; i++)
        free(config->paths[i]);
    free(config->paths);
    free(config->origins);
    free(config->sessions);
    free(config);
    return NULL;
}

bool config_name_is_valid(const char *name) {
    return parse_is_name(name, CONFIG_NAME_MAX - 1);
}

const SessionConfig *config_session(const Config *config, const char *name) {
    for (uint32_t i = 0; i < config->n_sessions; i++)
        if (strcmp(config->sessions[i].name, name) == 0)
            return &config->sessions[i];
    return NULL;
}

int config_need_session(Config *config, const char *name, SessionConfig **ret) {
    SessionConfig *grown;

    for (uint32_t i = 0; i < config->n_sessions; i++)
        if (strcmp(config->sessions[i].name, name) == 0) {
            *ret = &config->sessions[i];
            return 0;
        }
    if (config->n_sessions == CONFIG_SESSIONS_MAX)
        return -E2BIG;
    grown = reallocarray(config->sessions, config->n_sessions + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    config->sessions = grown;
    *ret = &grown[config->n_sessions++];
    config_session_defaults(*ret, name);
    return 0;
}

const char *config_session_name(const char *section) {
    static const char prefix[] = CONFIG_SESSION " ";

    if (strncmp(section, prefix, strlen(prefix)) != 0)
        return NULL;
    section += strlen(prefix);
    section += strspn(section, " ");
    return config_name_is_valid(section) ? section : NULL;
}

int config_set(Config *config, const char *section, const char *name, const char *value,
               const char **ret_expected) {
    const char *session_name = config_session_name(section);
    const ConfigKey *key = config_key(session_name ? CONFIG_SESSION : section, name);
    SessionConfig *session = NULL;
    int r = 0;

    if (!key || (!session_name && strcmp(section, CONFIG_PROFD) != 0))
        return -ENOENT;
    if (session_name)
        r = config_need_session(config, session_name, &session);
    if (r < 0)
        return r;
    r = key->parse(key, *value ? value : key->fallback, session ? (void *)session : config);
    if (r < 0)
        *ret_expected = key->expected;
    return r;
}

uint64_t config_amount(uint64_t amount, uint64_t whole_bytes, uint64_t built_in) {
    uint64_t percent = amount & ~CONFIG_PERCENT;

    if (amount == CONFIG_BUILT_IN)
        return built_in;
    return amount & CONFIG_PERCENT ? whole_bytes / 100 * percent : amount;
}

size_t config_origin_index(const ConfigKey *key, ptrdiff_t session) {
    ConfigTable table = config_table();

    return (size_t)(session + 1) * table.n + (size_t)(key - table.keys);
}

ConfigOrigin *config_load_origin(const ConfigLoad *load, const ConfigKey *key, ptrdiff_t session) {
    return &load->origins[config_origin_index(key, session)];
}

ConfigOrigin config_origin(const Config *config, const ConfigKey *key, const char *session) {
    const SessionConfig *of = session ? config_session(config, session) : NULL;

    if (!config->origins || (session && !of))
        return (ConfigOrigin){};
    return config->origins[config_origin_index(key, of ? of - config->sessions : -1)];
}
