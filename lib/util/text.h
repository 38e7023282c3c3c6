/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Appends text to a Buffer, without printf where speed matters (a dump prints hundreds of numbers a
 * microsecond), and has the one escape for bytes from outside: printable UTF-8 is unchanged,
 * everything else (controls, DEL, invalid sequences, C1, bidi overrides) and the backslash itself
 * become \xNN.
 */

#include <endian.h>

#include "util/buffer.h"
#include "util/bytes.h"

enum { TEXT_NUMBER_MAX = 20 }; /* the longest that text_put_*() writes */

/* Writes a number to memory with space for TEXT_NUMBER_MAX bytes; returns the position after it. */
char *text_put_u64(char *to, uint64_t v);
char *text_put_hex(char *to, uint64_t v);
/* seconds.nanoseconds; needs space for TEXT_NUMBER_MAX + 10 bytes. */
char *text_put_time_ns(char *to, uint64_t time_ns);

/* The eight nibbles of v as eight digits, all at once: each byte of the word is one digit. */
static inline uint64_t text_hex_digits(uint32_t v) {
    uint64_t x = bswap_32(v), letters;

    x = (x | x << 16) & 0x0000ffff0000ffffULL;
    x = (x | x << 8) & 0x00ff00ff00ff00ffULL;
    x = (x >> 4 & 0x000f000f000f000fULL) | (x & 0x000f000f000f000fULL) << 8;
    letters = (x + 0x0606060606060606ULL) >> 4 & 0x0101010101010101ULL;
    return x + 0x3030303030303030ULL + letters * ('a' - '0' - 10);
}

/* Writes the lower half of a number whose upper half was written: eight digits, no 0x. */
static inline char *text_put_hex_half(char *to, uint32_t v) {
    uint64_t digits = htole64(text_hex_digits(v));

    memcpy(to, &digits, sizeof(digits));
    return to + sizeof(digits);
}

/* Most printed text is plain ASCII and needs no escape. */
static inline bool text_is_plain(uint8_t c) {
    return c >= 0x20 && c < 0x7f && c != '\\' && c != '"';
}

static inline void text_puts(Buffer *b, const char *s) {
    buffer_append(b, s, strlen(s));
}

static inline void text_putc(Buffer *b, char c) {
    buffer_append(b, &c, 1);
}

void text_u64(Buffer *b, uint64_t v);
void text_i64(Buffer *b, int64_t v);
/* With 0x and without leading zeros. */
void text_hex(Buffer *b, uint64_t v);
/* Two lower-case digits per byte, no 0x. */
void text_hex_bytes(Buffer *b, Bytes bytes);
/* seconds.nanoseconds, nine digits after the point. */
void text_time_ns(Buffer *b, uint64_t time_ns);
void text_printf(Buffer *b, const char *format, ...) _printf_(2, 3);

/* Length of the valid UTF-8 sequence at p, at least one byte, and its code point; 0 if it is
 * invalid. */
size_t text_code_point(const uint8_t *p, size_t left, uint32_t *ret);

/* The one escape, for a terminal. */
void text_escape(Buffer *b, Bytes bytes);
void text_escape_str(Buffer *b, const char *s);
/* For text that its source has escaped already: escapes stay unchanged, and bytes that were not
 * escaped after all are. */
void text_escape_again(Buffer *b, Bytes bytes);
/* Undoes the escape: each \xNN becomes its byte, except \x00. Other backslashes stay, so a text
 * that was never escaped mostly stays the same. `to` needs as much space as `from`, including its
 * NUL, and may be the same. */
void text_unescape(const char *from, char *to);
/* Writes the same text as a JSON string with quotes: \xNN of text_escape() becomes "\\xNN". */
void text_json_string(Buffer *b, Bytes bytes);
