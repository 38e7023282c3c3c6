/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config-private.h"
#include "config/config-text.h"
#include "util/log.h"

/*
 * Fills a Config: headings name the daemon or a session, and the rows of the table say where the
 * value of a key goes. lib/config finds the files and splits their text.
 */

typedef struct Reader {
    ConfigLoad *load;
    const ConfigPlace *place;
    bool passed_over;  /* the section is unknown, which was reported */
    const char *kind;  /* the kind of section: "Profd", "Session"; NULL: none yet */
    ptrdiff_t session; /* by index; -1: the daemon */
} Reader;

#define report(reader, ...) config_report_at((reader)->place, __VA_ARGS__)

static int config_load_enter_session(Reader *reader, const char *name) {
    SessionConfig *session;
    int r = config_need_session(reader->load->config, name, &session);

    if (r == -E2BIG) {
        report(reader, "[Session %s] is one too many: there may be %d sessions at most", name,
               CONFIG_SESSIONS_MAX);
        reader->passed_over = true;
        return 0;
    }
    if (r < 0)
        return r;
    reader->kind = CONFIG_SESSION;
    reader->session = session - reader->load->config->sessions;
    return 0;
}

static int config_load_on_section(void *userdata, const ConfigPlace *place, const char *section) {
    const char *name = section ? config_session_name(section) : NULL;
    Reader *reader = userdata;

    reader->place = place;
    reader->kind = NULL;
    reader->session = -1;
    reader->passed_over = false;
    if (name)
        return config_load_enter_session(reader, name);
    if (section && strcmp(section, CONFIG_PROFD) == 0) {
        reader->kind = CONFIG_PROFD;
        return 0;
    }
    reader->passed_over = true;
    if (!section)
        report(reader, "This heading is not closed: write [Profd] or [Session NAME]");
    else if (strncmp(section, CONFIG_SESSION, strlen(CONFIG_SESSION)) == 0)
        report(reader,
               "[%s] has no good name: write [Session NAME], the name of at most %d letters, "
               "digits, '.', '_' and '-'",
               section, CONFIG_NAME_MAX - 1);
    else
        report(reader, "There is no section [%s]: write [Profd] or [Session NAME]", section);
    return 0;
}

static void config_load_report_unknown(Reader *reader, const char *name) {
    bool in_session = reader->session >= 0;
    const char *near = config_table_near(config_table(), reader->kind, name);

    if (config_key(in_session ? CONFIG_PROFD : CONFIG_SESSION, name))
        report(reader, "%s= is no key of [%s]: it belongs in [%s]", name, reader->kind,
               in_session ? CONFIG_PROFD : CONFIG_SESSION " NAME");
    else if (near)
        report(reader, "There is no key %s= in [%s]: did you mean %s=?", name, reader->kind, near);
    else
        report(reader, "There is no key %s= in [%s]: profd.conf(5) lists the keys", name,
               reader->kind);
}

/* Event= may be given several times; each adds to the previous ones, but not to the default. */
static const char *config_load_joined(const Reader *reader, const ConfigKey *key, const char *value,
                                      char *to, size_t size) {
    const ConfigOrigin *origin = config_load_origin(reader->load, key, reader->session);
    const SessionConfig *session;

    if (reader->session < 0 || strcmp(key->name, "Event") != 0 || !origin->path || !*value)
        return value;
    session = &reader->load->config->sessions[reader->session];
    (void)snprintf(to, size, "%s,%s", session->events, value);
    return to;
}

static void config_load_set_key(Reader *reader, const ConfigKey *key, const char *value) {
    Config *config = reader->load->config;
    void *base = reader->session < 0 ? (void *)config : &config->sessions[reader->session];
    ConfigOrigin *origin = config_load_origin(reader->load, key, reader->session);
    char text[CONFIG_EVENTS_MAX + CONFIG_LINE_MAX + 2];
    const char *whole = config_load_joined(reader, key, value, text, sizeof(text));
    int r = key->parse(key, *whole ? whole : key->fallback, base);

    if (r < 0)
        config_table_refuse(reader->place, key, value, r);
    else
        *origin =
            *value ? (ConfigOrigin){reader->place->path, reader->place->line} : (ConfigOrigin){};
}

static void config_load_on_key(void *userdata, const ConfigPlace *place, const char *name,
                               const char *value) {
    Reader *reader = userdata;
    const ConfigKey *key;

    reader->place = place;
    if (reader->passed_over)
        return;
    if (!reader->kind) {
        report(reader, "%s= stands before any section: put [Profd] or [Session NAME] above it",
               name);
        return;
    }
    key = config_key(reader->kind, name);
    if (key)
        config_load_set_key(reader, key, value);
    else
        config_load_report_unknown(reader, name);
}

static int config_load_read_file(ConfigLoad *load, const ConfigFile *file) {
    Reader reader = {.load = load, .session = -1};

    return config_text_read(&load->files, file,
                            &(ConfigReader){.on_section = config_load_on_section,
                                            .on_key = config_load_on_key,
                                            .userdata = &reader});
}

/* The origins point to the names of the files, so keep these names too. */
static int config_load_keep_origins(ConfigLoad *load) {
    Config *config = load->config;

    config->paths = calloc(MAX(load->files.n, (size_t)1), sizeof(*config->paths));
    if (!config->paths)
        return -ENOMEM;
    for (size_t i = 0; i < load->files.n; i++)
        config->paths[config->n_paths++] = TAKE_PTR(load->files.list[i].path);
    config->origins = TAKE_PTR(load->origins);
    return 0;
}

int config_take(ConfigLoad *load) {
    int r = config_new(&load->config);

    load->origins = calloc(config_table().n * (1 + CONFIG_SESSIONS_MAX), sizeof(*load->origins));
    if (r < 0 || !load->origins)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < load->files.n; i++)
        r = config_load_read_file(load, &load->files.list[i]);
    if (r < 0)
        return r;
    config_check(load);
    load->config->problems = (unsigned)load->files.problems;
    r = config_load_keep_origins(load);
    return r < 0 ? r : load->files.problems;
}

void config_load_done(ConfigLoad *load) {
    config_files_done(&load->files);
    free(load->origins);
    load->origins = NULL;
    load->config = config_free(load->config);
}

int config_load_below(const char *root, const char *path, ConfigProblem on_problem, void *userdata,
                      Config **ret) {
    _cleanup_(config_load_done)
        ConfigLoad load = {.files = {.on_problem = on_problem, .userdata = userdata}};
    int r = config_files_find(&load.files, root, "profd/profd.conf", path);

    if (r == 0)
        r = config_take(&load);
    if (r >= 0)
        *ret = TAKE_PTR(load.config);
    return r;
}

int config_load(const char *path, ConfigProblem on_problem, void *userdata, Config **ret) {
    return config_load_below("", path, on_problem, userdata, ret);
}

void config_log_problem(void *userdata _unused_, const char *path, unsigned line,
                        const char *problem) {
    char number[16];

    snprintf(number, sizeof(number), "%u", line);
    log_struct(
        LOG_LEVEL_WARNING, 0,
        LOG_FIELDS({"PROFD_EVENT", "config-problem"}, {"PROFD_FILE", path}, {"PROFD_LINE", number}),
        "%s:%u: %s", path, line, problem);
}
