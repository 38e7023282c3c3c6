/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JSON values put together so that nothing gets lost on the way. jansson returns NULL for want of
 * memory and for text that is no UTF-8, and where NULL is added to something it adds nothing. Here
 * a part that failed makes the whole NULL, and it stays NULL; so whoever made it asks once, at the
 * end. NULL never means "nothing": that is json_object(), or json_null().
 */

#include <jansson.h>

#include "util/macro.h"

/* Takes the value. */
void value_set(json_t **object, const char *name, json_t *value);
void value_append(json_t **array, json_t *value);

static inline void value_freep(json_t **object) {
    json_decref(*object);
    *object = NULL;
}
#define _cleanup_json_ _cleanup_(value_freep)
