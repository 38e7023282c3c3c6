/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/engine-format.h"

/*
 * The answer to a request of OTLP that was accepted, at least in part: a message that holds another
 * one, with the number of profiles that were rejected and a reason. It comes from an engine, so a
 * message that is cut or is none says nothing.
 */

enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_REJECTED = 1,
    PARTIAL_MESSAGE = 2,
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

typedef struct OtlpField {
    uint64_t number, value;
    Bytes bytes;
} OtlpField;

static uint64_t otlp_take_varint(Cursor *c) {
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(c);

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    cursor_fail(c);
    return 0;
}

/* False at the end, and where the message is broken. */
static bool otlp_take_field(Cursor *c, OtlpField *ret) {
    uint64_t key;

    if (c->failed || cursor_left(c) == 0)
        return false;
    key = otlp_take_varint(c);
    *ret = (OtlpField){.number = key >> 3};
    switch (key & 7) {
    case WIRE_VARINT:
        ret->value = otlp_take_varint(c);
        break;
    case WIRE_FIXED64:
        (void)cursor_u64(c);
        break;
    case WIRE_BYTES:
        ret->bytes = cursor_bytes(c, otlp_take_varint(c));
        break;
    case WIRE_FIXED32:
        (void)cursor_u32(c);
        break;
    default:
        cursor_fail(c);
    }
    return !c->failed;
}

/* False: it is broken, and *ret is as it was. */
static bool otlp_take_partial(Bytes message, EngineRejection *ret) {
    Cursor c = cursor_of(message.data, message.size, false);
    EngineRejection rejection = {};
    OtlpField field;

    while (otlp_take_field(&c, &field))
        if (field.number == PARTIAL_REJECTED && field.value <= INT64_MAX)
            rejection.profiles = field.value;
        else if (field.number == PARTIAL_MESSAGE)
            rejection.message = field.bytes;
    if (c.failed)
        return false;
    *ret = rejection;
    return true;
}

EngineRejection otlp_rejection(Bytes answer) {
    Cursor c = cursor_of(answer.data, answer.size, false);
    EngineRejection rejection = {};
    OtlpField field;

    while (otlp_take_field(&c, &field))
        if (field.number == RESPONSE_PARTIAL_SUCCESS && !otlp_take_partial(field.bytes, &rejection))
            cursor_fail(&c);
    return c.failed ? (EngineRejection){} : rejection;
}
