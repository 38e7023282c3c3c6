/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Writes numbers and strings to a Buffer. Digits are made two at a time from a table; strings are
 * scanned in runs that need no escape. Only this file decides what is printable: valid UTF-8 that
 * cannot move a cursor, reorder a line or hide.
 */

enum { CODE_POINT_MAX = 0x10ffff };

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";
static const char hex_digits[] = "0123456789abcdef";

static unsigned text_count_digits(uint64_t v) {
    static const uint64_t powers[] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000U,
    };
    /* log10(v) from log2(v), at most one too large */
    unsigned n = (64 - (unsigned)__builtin_clzll(v | 1)) * 1233 >> 12;

    return n + (v >= powers[n]);
}

/* The last n digits of v, including leading zeros. */
static char *text_put_digits(char *to, uint64_t v, unsigned n) {
    char *p = to + n;

    for (; p - to >= 2; v /= 100) {
        p -= 2;
        memcpy(p, digit_pairs + v % 100 * 2, 2);
    }
    if (p > to)
        *to = (char)('0' + v % 10);
    return to + n;
}

char *text_put_u64(char *to, uint64_t v) {
    return text_put_digits(to, v, text_count_digits(v));
}

char *text_put_time_ns(char *to, uint64_t time_ns) {
    to = text_put_u64(to, time_ns / 1000000000);
    *to++ = '.';
    return text_put_digits(to, time_ns % 1000000000, 9);
}

char *text_put_hex(char *to, uint64_t v) {
    unsigned n = (unsigned)(67 - __builtin_clzll(v | 1)) / 4;
    uint64_t digits[2];

    v <<= 64 - 4 * n;
    digits[0] = htole64(text_hex_digits((uint32_t)(v >> 32)));
    digits[1] = htole64(text_hex_digits((uint32_t)v));
    to[0] = '0';
    to[1] = 'x';
    memcpy(to + 2, digits, sizeof(digits));
    return to + 2 + n;
}

void text_u64(Buffer *b, uint64_t v) {
    uint8_t *p = buffer_reserve(b, TEXT_NUMBER_MAX);

    if (p)
        buffer_commit(b, (size_t)(text_put_u64((char *)p, v) - (char *)p));
}

void text_i64(Buffer *b, int64_t v) {
    if (v < 0)
        text_putc(b, '-');
    text_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void text_hex(Buffer *b, uint64_t v) {
    uint8_t *p = buffer_reserve(b, TEXT_NUMBER_MAX);

    if (p)
        buffer_commit(b, (size_t)(text_put_hex((char *)p, v) - (char *)p));
}

void text_hex_bytes(Buffer *b, Bytes bytes) {
    uint8_t *p = bytes.size <= SIZE_MAX / 2 ? buffer_reserve(b, bytes.size * 2) : NULL;

    if (!p)
        return;
    for (size_t i = 0; i < bytes.size; i++) {
        p[2 * i] = (uint8_t)hex_digits[bytes.data[i] >> 4];
        p[2 * i + 1] = (uint8_t)hex_digits[bytes.data[i] & 15];
    }
    buffer_commit(b, bytes.size * 2);
}

void text_time_ns(Buffer *b, uint64_t time_ns) {
    uint8_t *p = buffer_reserve(b, TEXT_NUMBER_MAX + 10);

    if (p)
        buffer_commit(b, (size_t)(text_put_time_ns((char *)p, time_ns) - (char *)p));
}

void text_printf(Buffer *b, const char *format, ...) {
    va_list ap;
    uint8_t *p;
    int n;

    va_start(ap, format);
    n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n < 0) {
        b->error = b->error ? b->error : -EINVAL;
        return;
    }
    p = buffer_reserve(b, (size_t)n + 1);
    if (!p)
        return;
    va_start(ap, format);
    (void)vsnprintf((char *)p, (size_t)n + 1, format, ap);
    va_end(ap);
    buffer_commit(b, (size_t)n);
}

size_t text_code_point(const uint8_t *p, size_t left, uint32_t *ret) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    uint32_t c;

    if (n == 0 || n > left)
        return 0;
    c = n == 1 ? p[0] : p[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > CODE_POINT_MAX || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

/* Code points that change how the text around them is displayed, or that XML does not know. */
static bool text_is_deceptive(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           c == 0xfffe || c == 0xffff || (c >= 0xe0000 && c <= 0xe0fff);
}

/* What has to be escaped besides deceptive code points. */
typedef enum Escape {
    ESCAPE_TEXT,  /* the backslash */
    ESCAPE_JSON,  /* and the quote */
    ESCAPE_AGAIN, /* nothing: a backslash belongs to an escape */
} Escape;

static void text_escape_into(Buffer *b, Bytes bytes, Escape kind) {
    size_t i = 0, plain = 0;

    while (i < bytes.size && text_is_plain(bytes.data[i]))
        i++;
    while (i < bytes.size) {
        uint32_t c = 0;
        size_t n = text_code_point(bytes.data + i, bytes.size - i, &c);
        bool json = kind == ESCAPE_JSON, quote = json && c == '"';
        bool backslash = kind != ESCAPE_AGAIN && c == '\\';

        if (n > 0 && !text_is_deceptive(c) && !backslash && !quote) {
            i += n;
            continue;
        }
        if (plain < i)
            buffer_append(b, bytes.data + plain, i - plain);
        if (quote)
            text_puts(b, "\\\"");
        else {
            n = n > 0 ? n : 1;
            for (size_t k = 0; k < n; k++) {
                text_puts(b, json ? "\\\\x" : "\\x");
                text_hex_bytes(b, (Bytes){.data = bytes.data + i + k, .size = 1});
            }
        }
        i += MAX(n, (size_t)1);
        plain = i;
    }
    if (plain < i)
        buffer_append(b, bytes.data + plain, i - plain);
}

void text_escape(Buffer *b, Bytes bytes) {
    text_escape_into(b, bytes, ESCAPE_TEXT);
}

void text_escape_again(Buffer *b, Bytes bytes) {
    text_escape_into(b, bytes, ESCAPE_AGAIN);
}

static int text_hex_value(char c) {
    const char *digit = c ? strchr(hex_digits, c | (c >= 'A' && c <= 'F' ? 0x20 : 0)) : NULL;

    return digit ? (int)(digit - hex_digits) : -1;
}

void text_unescape(const char *from, char *to) {
    while (*from) {
        int high = from[0] == '\\' && from[1] == 'x' ? text_hex_value(from[2]) : -1;
        int low = high >= 0 ? text_hex_value(from[3]) : -1;

        if (low >= 0 && (high | low) != 0) {
            *to++ = (char)(high << 4 | low);
            from += 4;
        } else
            *to++ = *from++;
    }
    *to = '\0';
}

void text_escape_str(Buffer *b, const char *s) {
    text_escape(b, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
}

void text_json_string(Buffer *b, Bytes bytes) {
    text_putc(b, '"');
    text_escape_into(b, bytes, ESCAPE_JSON);
    text_putc(b, '"');
}
