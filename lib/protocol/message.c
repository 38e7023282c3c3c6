/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/message.h"

#include <errno.h>

/*
 * Converts bytes to JSON and back. Before the JSON library gets a message, one pass over its bytes
 * checks its nesting and counts its values, so that a hostile message can exhaust neither the stack
 * nor memory. The library then refuses invalid UTF-8, duplicate keys, NUL in a string, and anything
 * after the object.
 */

/* clang-format off */
static const char *const fault_names[] = {
    [MESSAGE_NO_FAULT]  = "none",
    [MESSAGE_SIZE]      = "size",
    [MESSAGE_NESTING]   = "nesting",
    [MESSAGE_VALUES]    = "values",
    [MESSAGE_SYNTAX]    = "syntax",
    [MESSAGE_UTF8]      = "utf8",
    [MESSAGE_DUPLICATE] = "duplicate",
    [MESSAGE_NUL]       = "nul",
    [MESSAGE_NUMBER]    = "number",
    [MESSAGE_OBJECT]    = "object",
    [MESSAGE_FIELD]     = "field",
    [MESSAGE_FLAGS]     = "flags",
};
/* clang-format on */

static_assert(ARRAY_SIZE(fault_names) == MESSAGE_FAULTS, "a name for each fault");

const char *message_fault_name(MessageFault fault) {
    return fault_names[fault];
}

/* The end of a string whose opening quote was consumed. */
static const uint8_t *message_skip_string(const uint8_t *at, const uint8_t *end) {
    while (at < end && *at != '"')
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    return at < end ? at + 1 : end;
}

static int message_check_shape(const uint8_t *at, size_t n) {
    const uint8_t *end = at + n;
    size_t depth = 0, values = 0;

    while (at < end)
        switch (*at++) {
        case '"':
            at = message_skip_string(at, end);
            break;
        case '{':
        case '[':
            if (++depth > MESSAGE_DEPTH_MAX)
                return MESSAGE_NESTING;
            /* fall through */
        case ',':
            if (++values > MESSAGE_VALUES_MAX)
                return MESSAGE_VALUES;
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            break;
        }
    return 0;
}

static int message_fault_of(const json_error_t *error) {
    switch (json_error_code(error)) {
    case json_error_out_of_memory:
        return -ENOMEM;
    case json_error_invalid_utf8:
        return MESSAGE_UTF8;
    case json_error_duplicate_key:
        return MESSAGE_DUPLICATE;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return MESSAGE_NUL;
    case json_error_numeric_overflow:
        return MESSAGE_NUMBER;
    default:
        return MESSAGE_SYNTAX;
    }
}

int message_parse(const void *bytes, size_t n, json_t **ret) {
    json_error_t error;
    json_t *object;
    int r;

    if (n > MESSAGE_BYTES_MAX)
        return MESSAGE_SIZE;
    r = message_check_shape(bytes, n);
    if (r != 0)
        return r;
    object = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return message_fault_of(&error);
    if (!json_is_object(object)) {
        json_decref(object);
        return MESSAGE_OBJECT;
    }
    *ret = object;
    return 0;
}

static int message_append_bytes(const char *bytes, size_t n, void *userdata) {
    buffer_append(userdata, bytes, n);
    return buffer_error(userdata);
}

int message_append(Buffer *out, const json_t *object) {
    size_t size = out->size;

    if (json_dump_callback(object, message_append_bytes, out, JSON_COMPACT) < 0) {
        int r = buffer_error(out);

        out->size = size;
        return r < 0 ? r : -ENOMEM;
    }
    buffer_append(out, "", 1);
    if (buffer_error(out) < 0)
        out->size = size;
    return buffer_error(out);
}

/* An object; null counts as none. */
static int message_take_parameters(json_t *value, json_t **ret) {
    if (value && !json_is_object(value) && !json_is_null(value))
        return MESSAGE_FIELD;
    *ret = json_is_object(value) ? value : NULL;
    return 0;
}

int message_to_call(json_t *object, MessageCall *ret) {
    MessageCall call = {};
    int more = 0, oneway = 0, upgrade = 0;
    json_t *parameters = NULL;

    if (json_unpack_ex(object, NULL, JSON_STRICT, "{s:s, s?o, s?b, s?b, s?b}", "method",
                       &call.method, "parameters", &parameters, "more", &more, "oneway", &oneway,
                       "upgrade", &upgrade) < 0 ||
        message_take_parameters(parameters, &call.parameters) != 0)
        return MESSAGE_FIELD;
    if (more + oneway + upgrade > 1)
        return MESSAGE_FLAGS;
    call.more = more;
    call.oneway = oneway;
    call.upgrade = upgrade;
    *ret = call;
    return 0;
}

int message_to_reply(json_t *object, MessageReply *ret) {
    MessageReply reply = {};
    json_t *parameters = NULL;
    int continues = 0;

    if (json_unpack_ex(object, NULL, JSON_STRICT, "{s?s, s?o, s?b}", "error", &reply.error,
                       "parameters", &parameters, "continues", &continues) < 0 ||
        message_take_parameters(parameters, &reply.parameters) != 0)
        return MESSAGE_FIELD;
    if (continues && reply.error)
        return MESSAGE_FLAGS;
    reply.continues = continues;
    *ret = reply;
    return 0;
}
