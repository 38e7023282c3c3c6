/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Varlink messages: one JSON object each, ended by NUL, read strictly. */

#include <jansson.h>

#include "protocol/value.h"
#include "util/buffer.h"

enum {
    MESSAGE_BYTES_MAX = 1 << 20, /* without its NUL */
    MESSAGE_DEPTH_MAX = 32,
    MESSAGE_VALUES_MAX = 1 << 14, /* each costs memory and time that a byte or two ask for */
};

/* Why bytes are no message. */
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
    MESSAGE_OBJECT, /* it is none */
    MESSAGE_FIELD,  /* one is missing, unknown or of another type */
    MESSAGE_FLAGS,  /* that exclude each other */
    MESSAGE_FAULTS, /* how many there are */
} MessageFault;

/* "nesting", as BadMessage has it. */
const char *message_fault_name(MessageFault fault);

/* The object that n bytes (without the NUL) hold: 0, a MessageFault, or -ENOMEM. */
int message_parse(const void *bytes, size_t n, json_t **ret);
/* Compact, with its NUL, all of it or nothing: 0 or a negative errno. */
int message_append(Buffer *out, const json_t *object);

/* What it names lives as long as the object. */
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

/* Nothing but the fields that a call or a reply has, each of its type: 0 or a MessageFault. */
int message_to_call(json_t *object, MessageCall *ret);
int message_to_reply(json_t *object, MessageReply *ret);
