/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Varlink messages: each is one JSON object, ended by NUL, parsed strictly. */

#include <jansson.h>

#include "protocol/value.h"
#include "util/buffer.h"

enum {
    MESSAGE_BYTES_MAX = 1 << 20, /* not counting its NUL */
    MESSAGE_DEPTH_MAX = 32,
    MESSAGE_VALUES_MAX = 1 << 14, /* a bound, because a value of a byte or two costs much more
                                   * memory and time */
};

/* Why the bytes are not a valid message. */
typedef enum MessageFault {
    MESSAGE_NO_FAULT,
    MESSAGE_SIZE,
    MESSAGE_NESTING,
    MESSAGE_VALUES,
    MESSAGE_SYNTAX,
    MESSAGE_UTF8,
    MESSAGE_DUPLICATE,
    MESSAGE_NUL,
    MESSAGE_NUMBER,
    MESSAGE_OBJECT, /* it is not an object */
    MESSAGE_FIELD,  /* a field is missing, unknown or has another type */
    MESSAGE_FLAGS,  /* flags that exclude each other */
    MESSAGE_FAULTS, /* the number of faults */
} MessageFault;

/* For example "nesting", as in BadMessage. */
const char *message_fault_name(MessageFault fault);

/* Parses n bytes (without the NUL) into an object: 0, a MessageFault, or -ENOMEM. */
int message_parse(const void *bytes, size_t n, json_t **ret);
/* Appends compact JSON with its NUL, everything or nothing: 0 or a negative errno. */
int message_append(Buffer *out, const json_t *object);

/* The strings are borrowed from the object. */
typedef struct MessageCall {
    const char *method; /* "io.profd.Control.Ping" */
    json_t *parameters; /* NULL: none */
    bool more, oneway, upgrade;
} MessageCall;

typedef struct MessageReply {
    const char *error;  /* NULL: none */
    json_t *parameters; /* NULL: none */
    bool continues;
} MessageReply;

/* Accepts only the fields of a call or a reply, each with its type: 0 or a MessageFault. */
int message_to_call(json_t *object, MessageCall *ret);
int message_to_reply(json_t *object, MessageReply *ret);
