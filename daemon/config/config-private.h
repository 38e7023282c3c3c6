/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include "config/config.h"

#define CONFIG_PROFD   "Profd"
#define CONFIG_SESSION "Session"

/* Finds the session, or adds it with its defaults. */
int config_need_session(Config *config, const char *name, SessionConfig **ret);
/* NAME of "Session NAME"; NULL: another section or an invalid name. */
const char *config_session_name(const char *section);

/* The state of loading. */
typedef struct ConfigLoad {
    Config *config;
    ConfigFiles files;
    ConfigOrigin *origins; /* indexed by row of the table: first the daemon's, then each
                            * session's */
} ConfigLoad;

/* The origin of a row's key in a session (-1: in the daemon). */
ConfigOrigin *config_load_origin(const ConfigLoad *load, const ConfigKey *key, ptrdiff_t session);
size_t config_origin_index(const ConfigKey *key, ptrdiff_t session);

/* Fills load->config from the files; returns the number of problems, including those from
 * config_files_find(). */
int config_take(ConfigLoad *load);
void config_load_done(ConfigLoad *load);
/* Checks combinations of keys: reports and corrects them. */
void config_check(ConfigLoad *load);
/* The same for one session, by index. */
void config_check_session(ConfigLoad *load, ptrdiff_t session);
