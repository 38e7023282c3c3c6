/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files of a configuration: where they lie, what they hold, and what is wrong with them. */

#include <stddef.h>

#include "util/macro.h"

enum {
    CONFIG_FILE_MAX = 1 << 20,
    CONFIG_DROP_INS_MAX = 256,
};

/* Called for each problem, with the line it is in (0: the file as a whole) and one sentence. */
typedef void (*ConfigProblem)(void *userdata, const char *path, unsigned line, const char *problem);

typedef struct ConfigFile {
    char *path;
    char *text; /* size bytes and a NUL */
    size_t size;
} ConfigFile;

/* Later files override earlier ones. */
typedef struct ConfigFiles {
    ConfigFile list[1 + CONFIG_DROP_INS_MAX];
    size_t n;
    ConfigProblem on_problem; /* may be NULL */
    void *userdata;
    int problems; /* how many were reported */
} ConfigFiles;

/*
 * Finds and reads `path` with the drop-ins in PATH.d; or where path is NULL `name`, as
 * "profd/profd.conf", below root: the first that there is in /etc, /run and /usr/lib, none being
 * fine, with the drop-ins in NAME.d of all three. A drop-in that cannot be read is reported. 0, or
 * a negative errno when a file cannot be read.
 */
int config_files_find(ConfigFiles *files, const char *root, const char *name, const char *path);
void config_files_done(ConfigFiles *files);

/* Reports a problem and counts it. */
void config_report(ConfigFiles *files, const char *path, unsigned line, const char *format, ...)
    _printf_(4, 5);
