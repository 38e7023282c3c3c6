/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-writer.h"

#include "util/text.h"

/*
 * A buffer in front of the sink, and the escapes: text_escape() first, so that bytes that are no
 * UTF-8 and characters that deceive are seen as \xNN, then those of HTML or JSON. In JSON a "<" is
 * \u003c, so that no name can end the script element that holds it.
 */

enum { PAGE_WRITER_PIECE = 1 << 16, PAGE_DIGIT_BITS = 5 };

void page_writer_done(PageWriter *w) {
    buffer_done(&w->buffer);
    buffer_done(&w->scratch);
}

static void page_writer_flush(PageWriter *w) {
    if (w->error >= 0)
        w->error = buffer_error(&w->buffer);
    if (w->error >= 0 && w->buffer.size > 0)
        w->error = w->sink(w->buffer.data, w->buffer.size, w->arg);
    buffer_clear(&w->buffer);
}

int page_writer_finish(PageWriter *w) {
    page_writer_flush(w);
    return w->error < 0 ? w->error : 0;
}

void page_write(PageWriter *w, const void *data, size_t size) {
    buffer_append(&w->buffer, data, size);
    if (w->buffer.size >= PAGE_WRITER_PIECE || buffer_error(&w->buffer) < 0)
        page_writer_flush(w);
}

void page_puts(PageWriter *w, const char *s) {
    page_write(w, s, strlen(s));
}

void page_u64(PageWriter *w, uint64_t v) {
    char digits[TEXT_NUMBER_MAX];

    page_write(w, digits, (size_t)(text_put_u64(digits, v) - digits));
}

void page_json_u64(PageWriter *w, const char *name, uint64_t v) {
    page_puts(w, "\"");
    page_puts(w, name);
    page_puts(w, "\":");
    page_u64(w, v);
    page_puts(w, ",");
}

static void page_replace(PageWriter *w, const char *(*escape)(uint8_t c)) {
    const uint8_t *p = w->scratch.data;
    size_t n = w->scratch.size, plain = 0;

    if (buffer_error(&w->scratch) < 0)
        w->error = w->error < 0 ? w->error : buffer_error(&w->scratch);
    for (size_t i = 0; i < n; i++) {
        const char *instead = escape(p[i]);

        if (!instead)
            continue;
        page_write(w, p + plain, i - plain);
        page_puts(w, instead);
        plain = i + 1;
    }
    page_write(w, p + plain, n - plain);
    buffer_clear(&w->scratch);
}

static const char *page_escape_html(uint8_t c) {
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static const char *page_escape_json(uint8_t c) {
    return c == '<' ? "\\u003c" : NULL;
}

void page_html(PageWriter *w, Bytes text) {
    text_escape(&w->scratch, text);
    page_replace(w, page_escape_html);
}

void page_html_str(PageWriter *w, const char *s) {
    page_html(w, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
}

void page_json(PageWriter *w, Bytes text) {
    text_json_string(&w->scratch, text);
    page_replace(w, page_escape_json);
}

void page_json_str(PageWriter *w, const char *s) {
    page_json(w, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
}

void page_digits(PageWriter *w, uint64_t v) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[16];
    size_t n = 0;

    do {
        uint64_t rest = v >> PAGE_DIGIT_BITS;

        text[n++] = digits[(v & 31) | (rest > 0 ? 32 : 0)];
        v = rest;
    } while (v > 0);
    page_write(w, text, n);
}
