/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The labels of a series: names and values, sorted by name, each name once. */

#include "util/macro.h"

enum {
    LABELS_MAX = 29, /* Pyroscope's limit of a series, which has a name as well */
    LABEL_NAME_MAX = 128,
    LABEL_VALUE_MAX = 1024,
};

/* Which machine a profile is from: no rule removes it. */
#define LABEL_HOST "host"

typedef struct Label {
    char *name, *value;
} Label;

/* A zeroed set is valid and empty. */
typedef struct LabelSet {
    Label list[LABELS_MAX];
    size_t n;
} LabelSet;

void label_set_done(LabelSet *set);
/* [a-zA-Z_][a-zA-Z0-9_]*, at most LABEL_NAME_MAX bytes. */
bool label_is_name(const char *name);
/* NULL: there is no such label. */
const char *label_set_get(const LabelSet *set, const char *name);
/* Adds or replaces. An empty value removes, as in Prometheus. -EINVAL: not a name; -E2BIG: the
 * value is too long; -ENOSPC: too many labels. */
int label_set_put(LabelSet *set, const char *name, const char *value);
/* Does nothing if there is no such label, or if it is LABEL_HOST. */
void label_set_remove(LabelSet *set, const char *name);
