/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/frame/width.h"
#include "util/text.h"

/*
 * Layout for people: words are wrapped at the width of the terminal, and not at all in a pipe;
 * labels end in one column. Only marks and labels are coloured, so that colours never affect the
 * layout.
 */

enum { LABEL_COLUMNS = 12, WIDTH_MIN = 40 };

static void screen_spaces(Buffer *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        text_putc(out, ' ');
}

void screen_wrap(Buffer *out, const char *text, size_t column, size_t indent, size_t width) {
    bool first = true;

    while (*text) {
        size_t n = strcspn(text, " \n");

        if (!first && column + 1 + width_of(text, n) > width) {
            text_putc(out, '\n');
            screen_spaces(out, indent);
            column = indent;
        } else if (!first) {
            text_putc(out, ' ');
            column++;
        }
        buffer_append(out, text, n);
        column += width_of(text, n);
        text += n + (text[n] != '\0');
        first = false;
    }
    text_putc(out, '\n');
}

Screen screen_of(Context *c) {
    size_t width = context_width(c);

    return (Screen){
        .out = &c->out.buffer,
        .width = width ? MAX(width, (size_t)WIDTH_MIN) : SIZE_MAX,
        .colors = context_colors(c),
    };
}

static void screen_colored(const Screen *s, Color color, const char *text) {
    bool colors = s->colors && color != COLOR_NONE;

    if (colors)
        text_puts(s->out, color_sequence(color));
    text_puts(s->out, text);
    if (colors)
        text_puts(s->out, color_sequence(COLOR_NONE));
}

void screen_title(const Screen *s, Color color, const char *name, const char *text) {
    size_t column = 2 + width_of(name, strlen(name)) + 1;

    screen_colored(s, color, "●");
    text_putc(s->out, ' ');
    screen_colored(s, COLOR_STRONG, name);
    text_putc(s->out, ' ');
    screen_wrap(s->out, text, column, LABEL_COLUMNS + 2, s->width);
}

void screen_line(const Screen *s, const char *label, Color color, const char *text) {
    size_t n = label ? width_of(label, strlen(label)) : 0;

    screen_spaces(s->out, LABEL_COLUMNS - MIN(n, (size_t)LABEL_COLUMNS));
    screen_colored(s, color, label ? label : "");
    text_puts(s->out, label ? ": " : "  ");
    screen_wrap(s->out, text, LABEL_COLUMNS + 2, LABEL_COLUMNS + 2, s->width);
}

void screen_printf(const Screen *s, const char *label, const char *format, ...) {
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        text = NULL;
    va_end(ap);
    screen_line(s, label, COLOR_NONE, text ? text : "?");
}

void screen_buffer(const Screen *s, const char *label, Buffer *text) {
    text_putc(text, '\0');
    screen_line(s, label, COLOR_NONE, buffer_error(text) ? "?" : (const char *)text->data);
    buffer_clear(text);
}
