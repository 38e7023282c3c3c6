/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "protocol/interface.h"
#include "protocol/message.h"

/*
 * A message of any bytes: what is taken for one must be written and read as the same, and what is
 * called in it is held against the interfaces; where parameters pass, they pass strictly or not
 * alike for nothing but added fields. Input: the message, without its NUL.
 */

static void require(bool holds) {
    if (!holds)
        abort();
}

static const Interface *interface_of(const char *text) {
    static Interface *interfaces[2];
    static const char *texts[2];
    size_t i = 0;

    while (texts[i] && texts[i] != text)
        i++;
    if (!texts[i]) {
        require(interface_new(text, &interfaces[i], NULL) == 0);
        texts[i] = text;
    }
    return interfaces[i];
}

static void check_call(const MessageCall *call) {
    static const char *const texts[] = {interface_text_control, interface_text_service};
    const char *dot = strrchr(call->method, '.'), *member = dot ? dot + 1 : call->method;
    char field[INTERFACE_FIELD_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        for (int part = INTERFACE_CALL; part <= INTERFACE_ERROR; part++) {
            const Interface *interface = interface_of(texts[i]);
            int strict = interface_check(interface, (InterfacePart)part, member, call->parameters,
                                         INTERFACE_STRICT, field);
            int lax = interface_check(interface, (InterfacePart)part, member, call->parameters,
                                      INTERFACE_ADDED_FIELDS, field);

            require(strict == 0 || strict == -ENOENT || strict == -EINVAL);
            require(lax == strict || (lax == 0 && strict == -EINVAL));
            if (lax == -EINVAL)
                require(memchr(field, 0, sizeof(field)) != NULL);
        }
}

static void check_same(const json_t *object) {
    _cleanup_(buffer_done) Buffer out = {};
    _cleanup_json_ json_t *again = NULL;

    require(message_append(&out, object) == 0);
    require(memchr(out.data, 0, out.size) == out.data + out.size - 1);
    /* Escapes may be longer than the characters they stand for. */
    if (out.size <= MESSAGE_BYTES_MAX)
        require(message_parse(out.data, out.size - 1, &again) == 0 && json_equal(object, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_json_ json_t *object = NULL;
    MessageReply reply;
    MessageCall call;
    int r = message_parse(data, size, &object);

    require(r >= 0 && r < MESSAGE_FAULTS);
    if (r != 0)
        return 0;
    check_same(object);
    if (message_to_call(object, &call) == 0)
        check_call(&call);
    if (message_to_reply(object, &reply) == 0)
        require(!reply.error || !reply.continues);
    return 0;
}
