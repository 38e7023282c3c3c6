/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A table of keys, with everything about a key in its row. The key's own parser reads its default,
 * so the table and the effective value agree.
 */

#include "config/config-text.h"

typedef struct ConfigKey ConfigKey;
struct ConfigKey {
    const char *section;
    const char *name;
    const char *fallback; /* the default, in the form in which it is written */
    const char *expected; /* which values are valid, for people */
    /* Parses into the struct at base, which is unchanged on failure. */
    int (*parse)(const ConfigKey *key, const char *value, void *base);
    uint64_t min, max; /* bounds of the parsed value, inclusive */
    size_t offset, size;
    bool is_secret;   /* a mistaken value may be a password, so no problem says it */
    unsigned touches; /* what must be updated when the key changes: bits of the program */
};

typedef struct ConfigTable {
    const ConfigKey *keys;
    size_t n;
} ConfigTable;

/* NULL: the section has no such key. */
const ConfigKey *config_table_find(ConfigTable table, const char *section, const char *name);
/* The name of the key that was probably meant; NULL: none is like it. */
const char *config_table_near(ConfigTable table, const char *section, const char *name);
/* Sets every key of the section to its default. */
void config_table_defaults(ConfigTable table, const char *section, void *base);
/* Reports a value that the key's parser has refused with this error. */
void config_table_refuse(const ConfigPlace *place, const ConfigKey *key, const char *value,
                         int error);
/* Prints the keys for the lint test that compares the default file and the manual with the table.
 */
void config_table_print(ConfigTable table);
