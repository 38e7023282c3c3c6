/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Prints facts like systemctl status: labels that end in one column, and next to each a wrapped
 * text. The text must be escaped already.
 */

#include "client/frame/color.h"
#include "client/frame/command.h"

typedef struct Screen {
    Buffer *out;
    size_t width;
    bool colors;
} Screen;

Screen screen_of(Context *c);

/* "● name text": the title of the lines below it. */
void screen_title(const Screen *s, Color color, const char *name, const char *text);
/* "    Label: text". Without a label the text is below the previous one. The colour is that of the
 * label. */
void screen_line(const Screen *s, const char *label, Color color, const char *text);
void screen_printf(const Screen *s, const char *label, const char *format, ...) _printf_(3, 4);
/* Prints the content of a buffer and clears it. */
void screen_buffer(const Screen *s, const char *label, Buffer *text);

/* Text wrapped at `width`, with all lines but the first indented; `column` is where it starts. */
void screen_wrap(Buffer *out, const char *text, size_t column, size_t indent, size_t width);
