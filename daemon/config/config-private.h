/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include "config/config.h"

#define CONFIG_PROFD   "Profd"
#define CONFIG_SESSION "Session"

enum {
    CONFIG_LINE_MAX = 198, /* inih's limit */
    CONFIG_FILE_MAX = 1 << 20,
    CONFIG_DROP_INS_MAX = 256,
    CONFIG_PROBLEM_MAX = 512,
};

/* Finds the session, or adds it with its defaults. */
int config_need_session(Config *config, const char *name, SessionConfig **ret);
/* NAME of "Session NAME"; NULL: another section or an invalid name. */
const char *config_session_name(const char *section);

typedef struct ConfigFile {
    char *path;
    char *text; /* size bytes and a NUL */
    size_t size;
} ConfigFile;

/* The state of loading: later files override earlier ones. */
typedef struct ConfigLoad {
    Config *config;
    ConfigFile files[1 + CONFIG_DROP_INS_MAX];
    size_t n_files;
    ConfigOrigin *origins; /* indexed by row of the table: first the daemon's, then each
                            * session's */
    ConfigProblem on_problem;
    void *userdata;
    int problems;
} ConfigLoad;

/* Reports a problem and counts it. */
void config_report(ConfigLoad *load, const char *path, unsigned line, const char *format, ...)
    _printf_(4, 5);
/* The origin of a row's key in a session (-1: in the daemon). */
ConfigOrigin *config_load_origin(const ConfigLoad *load, const ConfigKey *key, ptrdiff_t session);
size_t config_origin_index(const ConfigKey *key, ptrdiff_t session);

/* Finds and reads the files, those of the default path below `root`. Reports drop-ins that cannot
 * be read. */
int config_find(ConfigLoad *load, const char *root, const char *path);
/* Fills load->config from the files; returns the number of problems, including those from
 * config_find(). */
int config_take(ConfigLoad *load);
void config_load_done(ConfigLoad *load);
/* Checks combinations of keys: reports and corrects them. */
void config_check(ConfigLoad *load);
/* The same for one session, by index. */
void config_check_session(ConfigLoad *load, ptrdiff_t session);
