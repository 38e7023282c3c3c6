/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "config/config-near.h"
#include "config/config-private.h"
#include "util/log.h"

/*
 * Parses text into a Config. inih splits Key=value and comments, but it has silent habits that are
 * prevented here: it cuts long lines and long section names, takes an indented line as a
 * continuation of the previous value, stays in the old section after an invalid heading, and
 * reports only the first bad line. So headings are parsed here, lines are passed to inih without
 * indentation, and a line is invalid if inih does not call the handler for it.
 */

typedef struct Reader {
    ConfigLoad *load;
    const ConfigFile *file;
    size_t offset;
    unsigned line;
    bool waiting;      /* inih has the line and has not called the handler yet */
    bool passed_over;  /* the section is unknown, which was reported */
    const char *kind;  /* the kind of section: "Profd", "Session"; NULL: none yet */
    ptrdiff_t session; /* by index; -1: the daemon */
    int error;
} Reader;

#define report(reader, ...)                                                                        \
    config_report((reader)->load, (reader)->file->path, (reader)->line, __VA_ARGS__)

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

/* The text between the brackets, which is terminated in place. NULL: not a heading. */
static char *config_load_heading(char *line) {
    char *end = strchr(line, ']'), *rest;

    if (!end)
        return NULL;
    rest = end + 1 + strspn(end + 1, " \t\r");
    if (*rest && *rest != '#' && *rest != ';')
        return NULL;
    *end = '\0';
    return line + 1;
}

static int config_load_enter_section(Reader *reader, char *line) {
    char *section = config_load_heading(line);
    const char *name = section ? config_session_name(section) : NULL;

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
    const char *near = config_near_key(reader->kind, name);

    if (config_key(in_session ? CONFIG_PROFD : CONFIG_SESSION, name))
        report(reader, "%s= is no key of [%s]: it belongs in [%s]", name, reader->kind,
               in_session ? CONFIG_PROFD : CONFIG_SESSION " NAME");
    else if (near)
        report(reader, "There is no key %s= in [%s]: did you mean %s=?", name, reader->kind, near);
    else
        report(reader, "There is no key %s= in [%s]: see profd.conf(5) for those that are", name,
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
        report(reader, "%s=%s is %s: it takes %s", key->name, value,
               r == -ERANGE ? "out of range" : "not understood", key->expected);
    else
        *origin = *value ? (ConfigOrigin){reader->file->path, reader->line} : (ConfigOrigin){};
}

static int config_load_on_key(void *userdata, const char *section _unused_, const char *name,
                              const char *value) {
    Reader *reader = userdata;
    const ConfigKey *key;

    if (!value)
        return 1;
    reader->waiting = false;
    if (reader->passed_over)
        return 1;
    if (!reader->kind) {
        report(reader, "%s= stands before any section: put [Profd] or [Session NAME] above it",
               name);
        return 1;
    }
    key = config_key(reader->kind, name);
    if (key)
        config_load_set_key(reader, key, value);
    else
        config_load_report_unknown(reader, name);
    return 1;
}

static void config_load_end_line(Reader *reader) {
    if (reader->waiting)
        report(reader, "This line is no heading, no comment and no key: write Key=value");
    reader->waiting = false;
}

/* The text of the next line; NULL if inih shall not see it. */
static const char *config_load_take_line(Reader *reader, size_t *ret_n) {
    const char *from = reader->file->text + reader->offset;
    size_t left = reader->file->size - reader->offset, n;
    const char *end = memchr(from, '\n', left);

    n = end ? (size_t)(end - from) : left;
    reader->offset += n + (end ? 1 : 0);
    reader->line++;
    if (reader->line == 1 && n >= 3 && memcmp(from, "\xef\xbb\xbf", 3) == 0) {
        from += 3;
        n -= 3;
    }
    *ret_n = 0;
    if (memchr(from, '\0', n)) {
        report(reader, "This line holds a NUL byte: a configuration is text");
        return from;
    }
    for (; n > 0 && strchr(" \t", *from); from++, n--)
        ;
    if (n > CONFIG_LINE_MAX) {
        report(reader, "This line is too long: it may have %d characters at most", CONFIG_LINE_MAX);
        return from;
    }
    *ret_n = n;
    return from;
}

/* Returns a line to inih like fgets(); an empty one if inih has nothing to do. */
static char *config_load_next_line(char *buffer, int size, void *userdata) {
    Reader *reader = userdata;
    const char *line;
    size_t n;

    config_load_end_line(reader);
    if (reader->error < 0 || reader->offset == reader->file->size)
        return NULL;
    line = config_load_take_line(reader, &n);
    assert(size > CONFIG_LINE_MAX + 1);
    memcpy(buffer, line, n);
    buffer[n] = '\0';
    if (buffer[0] == '[')
        reader->error = config_load_enter_section(reader, buffer);
    reader->waiting = !strchr("[#;\r", buffer[0]);
    if (!reader->waiting)
        n = 0;
    strcpy(buffer + n, "\n");
    return buffer;
}

static int config_load_read_file(ConfigLoad *load, const ConfigFile *file) {
    Reader reader = {.load = load, .file = file, .session = -1};
    int r = ini_parse_stream(config_load_next_line, &reader, config_load_on_key, &reader);

    if (reader.error < 0)
        return reader.error;
    return r < 0 ? -ENOMEM : 0;
}

/* The origins point to the names of the files, so keep these names too. */
static int config_load_keep_origins(ConfigLoad *load) {
    Config *config = load->config;

    config->paths = calloc(MAX(load->n_files, (size_t)1), sizeof(*config->paths));
    if (!config->paths)
        return -ENOMEM;
    for (size_t i = 0; i < load->n_files; i++)
        config->paths[config->n_paths++] = TAKE_PTR(load->files[i].path);
    config->origins = TAKE_PTR(load->origins);
    return 0;
}

int config_take(ConfigLoad *load) {
    size_t n_keys;
    int r = config_new(&load->config);

    (void)config_keys(&n_keys);
    load->origins = calloc(n_keys * (1 + CONFIG_SESSIONS_MAX), sizeof(*load->origins));
    if (r < 0 || !load->origins)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < load->n_files; i++)
        r = config_load_read_file(load, &load->files[i]);
    if (r < 0)
        return r;
    config_check(load);
    load->config->problems = (unsigned)load->problems;
    r = config_load_keep_origins(load);
    return r < 0 ? r : load->problems;
}

void config_load_done(ConfigLoad *load) {
    for (size_t i = 0; i < load->n_files; i++) {
        free(load->files[i].path);
        free(load->files[i].text);
    }
    load->n_files = 0;
    free(load->origins);
    load->origins = NULL;
    load->config = config_free(load->config);
}

int config_load_below(const char *root, const char *path, ConfigProblem on_problem, void *userdata,
                      Config **ret) {
    _cleanup_(config_load_done) ConfigLoad load = {.on_problem = on_problem, .userdata = userdata};
    int r = config_find(&load, root, path);

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
