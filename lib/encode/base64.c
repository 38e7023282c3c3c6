/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/base64.h"

/* Three bytes become four letters of six bits each; what lacks at the end is padded. */

static void base64_put(uint8_t *to, const uint8_t *from, size_t n) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t v = (uint32_t)from[0] << 16;

    if (n > 1)
        v |= (uint32_t)from[1] << 8;
    if (n > 2)
        v |= from[2];
    to[0] = (uint8_t)letters[v >> 18];
    to[1] = (uint8_t)letters[v >> 12 & 63];
    to[2] = (uint8_t)(n > 1 ? letters[v >> 6 & 63] : '=');
    to[3] = (uint8_t)(n > 2 ? letters[v & 63] : '=');
}

void base64_encode(Buffer *b, Bytes bytes) {
    size_t n = bytes.size / 3 * 4 + (bytes.size % 3 > 0 ? 4 : 0);
    uint8_t *to = n > 0 ? buffer_reserve(b, n) : NULL;

    if (!to)
        return;
    for (size_t i = 0; i < bytes.size; i += 3, to += 4)
        base64_put(to, bytes.data + i, bytes.size - i);
    buffer_commit(b, n);
}
