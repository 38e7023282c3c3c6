/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/reply.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

/*
 * Escapes and reads replies. The daemon has escaped text from outside; all strings are escaped
 * again here, in case something else listens at the socket, so that tables, sentences and JSON can
 * print them directly.
 */

/* Enough for whole numbers below 2^53, and few enough to print 0.1 as 0.1. */
enum { REAL_DIGITS = 16 };

const char *reply_string(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

double reply_number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

uint64_t reply_count(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);

    if (json_is_integer(value))
        return (uint64_t)MAX(json_integer_value(value), (json_int_t)0);
    return number >= 1 && number < 0x1p63 ? (uint64_t)number : 0;
}

bool reply_bool(const json_t *object, const char *name) {
    return json_is_true(json_object_get(object, name));
}

bool reply_has(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    return value && !json_is_null(value);
}

const json_t *reply_member(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    return json_is_object(value) || json_is_array(value) ? value : NULL;
}

static void reply_shown_text(Buffer *out, const char *text, size_t n) {
    buffer_clear(out);
    text_escape_again(out, (Bytes){.data = (const uint8_t *)text, .size = n});
    text_putc(out, '\0');
}

static json_t *reply_shown_string(const json_t *value) {
    _cleanup_(buffer_done) Buffer out = {};

    reply_shown_text(&out, json_string_value(value), json_string_length(value));
    return buffer_error(&out) ? NULL : json_string((const char *)out.data);
}

static json_t *reply_shown_array(const json_t *value) {
    json_t *copy = json_array(), *item;
    size_t i;

    json_array_foreach(value, i,
                       item) if (copy && json_array_append_new(copy, reply_shown(item)) < 0) {
        json_decref(copy);
        copy = NULL;
    }
    return copy;
}

static json_t *reply_shown_object(const json_t *value) {
    _cleanup_(buffer_done) Buffer name = {};
    json_t *copy = json_object(), *item;
    const char *key;

    json_object_foreach((json_t *)value, key, item) {
        reply_shown_text(&name, key, strlen(key));
        if (copy && (buffer_error(&name) ||
                     json_object_set_new(copy, (const char *)name.data, reply_shown(item)) < 0)) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

/* The recursion is bounded by the nesting of a message. */
json_t *reply_shown(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return reply_shown_string(value);
    case JSON_ARRAY:
        return reply_shown_array(value);
    case JSON_OBJECT:
        return reply_shown_object(value);
    default:
        return json_incref((json_t *)value);
    }
}

static int reply_append(const char *text, size_t n, void *out) {
    buffer_append(out, text, n);
    return 0;
}

int reply_print(Context *c, const json_t *value) {
    size_t layout = c->json == JSON_PRETTY ? (size_t)JSON_INDENT(2) : JSON_COMPACT;

    if (json_dump_callback(value, reply_append, &c->out.buffer,
                           layout | JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS)) < 0)
        return complain(STATUS_FAILED, "Failed to print what profd answered: %s.",
                        strerror(ENOMEM));
    text_putc(&c->out.buffer, '\n');
    return STATUS_OK;
}

int reply_print_done(Context *c, int status, json_t *done) {
    int r = c->json && (done || status == STATUS_OK) ? reply_print(c, done) : STATUS_OK;

    json_decref(done);
    return status == STATUS_OK ? r : status;
}
