/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/value.h"

#include <stddef.h>

#include "util/text.h"

/* The two ways to add to a JSON value free the whole and set it to NULL if a part is missing. */

static void value_give_up(json_t **whole) {
    json_decref(*whole);
    *whole = NULL;
}

void value_set(json_t **object, const char *name, json_t *value) {
    if (!*object)
        json_decref(value);
    else if (json_object_set_new(*object, name, value) < 0)
        value_give_up(object);
}

void value_append(json_t **array, json_t *value) {
    if (!*array)
        json_decref(value);
    else if (json_array_append_new(*array, value) < 0)
        value_give_up(array);
}

json_t *value_word(const char *word) {
    _cleanup_(buffer_done) Buffer text = {};
    json_t *value = json_string(word);

    if (value)
        return value;
    text_escape_str(&text, word);
    text_putc(&text, '\0');
    return buffer_error(&text) ? NULL : json_string((const char *)text.data);
}
