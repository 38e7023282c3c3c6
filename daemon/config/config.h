/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The configuration: one struct, one table of keys. A key's default is a text in the table that
 * goes through the key's own parser, so what the table says is what holds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Config {
    uint64_t frequency_hz;
    uint64_t buffer_bytes;
    bool call_graph;
    bool exclude_idle;
    bool kernel_samples;
    int zstd_level; /* 0: not compressed */
    uint64_t flush_interval_ns;
} Config;

typedef struct ConfigKey {
    const char *section;
    const char *name;
    const char *fallback; /* the default, as one would write it */
    const char *expected; /* what is right, for people */
    int (*parse)(const char *value, void *ret);
    size_t offset; /* in Config */
} ConfigKey;

/* Rows in the order of the configuration file; *ret_n of them. */
const ConfigKey *config_keys(size_t *ret_n);
void config_set_defaults(Config *config);
/* By section and name: -ENOENT for a key that does not exist, *ret_expected for a bad value. */
int config_set(Config *config, const char *section, const char *name, const char *value,
               const char **ret_expected);

/* Called for each problem, with the line it is in (0: the file as a whole) and one sentence. */
typedef void (*ConfigProblem)(void *userdata, const char *path, unsigned line, const char *problem);

/*
 * Takes in what is right in the file and reports the rest. Returns the number of problems, or a
 * negative errno when the file cannot be read; *config is then untouched.
 */
int config_load(Config *config, const char *path, ConfigProblem on_problem, void *userdata);
