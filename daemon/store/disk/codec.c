/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/codec.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

/* Names may contain any bytes and pass the one escape; everything that is read is checked. */

json_t *codec_number(uint64_t v) {
    return json_integer((json_int_t)MIN(v, (uint64_t)INT64_MAX));
}

json_t *codec_text(const char *s) {
    _cleanup_(buffer_done) Buffer escaped = {};

    text_escape_str(&escaped, s);
    if (buffer_error(&escaped) < 0)
        return NULL;
    return json_stringn(escaped.size ? (const char *)escaped.data : "", escaped.size);
}

static int codec_hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int codec_take_text(const json_t *json, char *ret, size_t size) {
    const char *s = json_string_value(json), *end = s ? s + json_string_length(json) : NULL;
    char text[CODEC_TEXT_MAX];
    size_t n = 0;

    if (!s || size > sizeof(text))
        return -EBADMSG;
    for (; s < end && n < size - 1; n++) {
        int high = 0, low = 0;

        if (*s == '\\' && (end - s < 4 || s[1] != 'x' || (high = codec_hex_digit(s[2])) < 0 ||
                           (low = codec_hex_digit(s[3])) < 0))
            return -EBADMSG;
        text[n] = *s == '\\' ? (char)(high << 4 | low) : *s;
        if (text[n] == '\0')
            return -EBADMSG;
        s += *s == '\\' ? 4 : 1;
    }
    if (s < end)
        return -EBADMSG;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return 0;
}

int codec_take_number(const json_t *json, uint64_t max, uint64_t *ret) {
    json_int_t v = json_integer_value(json);

    if (!json_is_integer(json) || v < 0 || (uint64_t)v > max)
        return -EBADMSG;
    *ret = (uint64_t)v;
    return 0;
}
