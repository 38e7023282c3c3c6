/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Builds JSON values without losing errors. jansson returns NULL for lack of memory and for invalid
 * UTF-8, and adding to NULL does nothing. Here a part that is NULL makes the whole value NULL, and
 * it stays NULL; so the caller checks once, at the end. NULL never means "nothing": that is
 * json_object(), or json_null().
 */

#include <jansson.h>

#include "util/macro.h"

/* Takes ownership of the value. */
void value_set(json_t **object, const char *name, json_t *value);
void value_append(json_t **array, json_t *value);

/* A string; invalid UTF-8 is escaped, and then matches no name. */
json_t *value_word(const char *word);

static inline void value_freep(json_t **object) {
    json_decref(*object);
    *object = NULL;
}
#define _cleanup_json_ _cleanup_(value_freep)
