/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The text of a configuration file: headings, and Key=value below them. */

#include "config/config-file.h"

enum { CONFIG_LINE_MAX = 198 }; /* inih's */

/* The line under way. */
typedef struct ConfigPlace {
    ConfigFiles *files;
    const char *path;
    unsigned line;
} ConfigPlace;

#define config_report_at(place, ...)                                                               \
    config_report((place)->files, (place)->path, (place)->line, __VA_ARGS__)

typedef struct ConfigReader {
    /* [section]; NULL: the heading is not closed. A negative errno ends the reading. */
    int (*on_section)(void *userdata, const ConfigPlace *place, const char *section);
    void (*on_key)(void *userdata, const ConfigPlace *place, const char *name, const char *value);
    /* A line that neither of them gets, because it cannot be read; it was reported. NULL: ignored.
     */
    void (*on_refused)(void *userdata, const ConfigPlace *place);
    void *userdata;
} ConfigReader;

/* Reports each line that is neither heading nor key nor comment. 0 or a negative errno. */
int config_text_read(ConfigFiles *files, const ConfigFile *file, const ConfigReader *reader);
