/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "protocol/interface.h"
#include "protocol/message.h"

/*
 * A text of any bytes as an interface, and an object held against its methods. Input: the text, and
 * behind a NUL, if there is one, the object.
 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(interface_freep) Interface *interface = NULL;
    _cleanup_json_ json_t *object = NULL;
    _cleanup_free_ char *text = strndup(size ? (const char *)data : "", size);
    size_t n = text ? strlen(text) + 1 : 0;
    unsigned line = 0;
    const char *method;

    if (!text)
        return 0;
    if (interface_new(text, &interface, &line) < 0) {
        if (line == 0 || line > n)
            abort();
        return 0;
    }
    if (n < size && message_parse(data + n, size - n, &object) != 0)
        return 0;
    for (size_t i = 0; (method = interface_method(interface, i)); i++)
        for (int part = INTERFACE_CALL; part <= INTERFACE_REPLY; part++)
            if (interface_check(interface, (InterfacePart)part, method, object, INTERFACE_STRICT,
                                NULL) == -ENOENT)
                abort();
    return 0;
}
