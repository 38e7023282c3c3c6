/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include "config/config.h"

#define CONFIG_PROFD   "Profd"
#define CONFIG_SESSION "Session"

enum {
    CONFIG_LINE_MAX = 198, /* inih's */
    CONFIG_FILE_MAX = 1 << 20,
    CONFIG_DROP_INS_MAX = 256,
    CONFIG_PROBLEM_MAX = 512,
};

/* The session, added with its defaults where there is none. */
int config_need_session(Config *config, const char *name, SessionConfig **ret);
/* NAME of "Session NAME"; NULL when it is no such section or no valid name. */
const char *config_session_name(const char *section);

typedef struct ConfigFile {
    char *path;
    char *text; /* of size bytes, and a NUL behind */
    size_t size;
} ConfigFile;

/* One loading: the files are in the order in which they hold, later ones over earlier ones. */
typedef struct ConfigLoad {
    Config *config;
    ConfigFile files[1 + CONFIG_DROP_INS_MAX];
    size_t n_files;
    ConfigOrigin *origins; /* by row of the table: one for the daemon, then one a session */
    ConfigProblem on_problem;
    void *userdata;
    int problems;
} ConfigLoad;

/* Tells of a problem and counts it. */
void config_report(ConfigLoad *load, const char *path, unsigned line, const char *format, ...)
    _printf_(4, 5);
/* Where a row's key of a session (-1: of the daemon) was set. */
ConfigOrigin *config_load_origin(const ConfigLoad *load, const ConfigKey *key, ptrdiff_t session);
size_t config_origin_index(const ConfigKey *key, ptrdiff_t session);

/* Finds and reads the files, those of the default path below `root`. What of drop-ins cannot be
 * read is told. */
int config_find(ConfigLoad *load, const char *root, const char *path);
/* Makes load->config of the files; the number of problems, those of finding them included. */
int config_take(ConfigLoad *load);
void config_load_done(ConfigLoad *load);
/* What keys say together: reports, and mends. */
void config_check(ConfigLoad *load);
/* Of one session, by index. */
void config_check_session(ConfigLoad *load, ptrdiff_t session);
