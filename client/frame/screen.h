/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A screen of facts, as systemctl status lays them out: a label that ends in one column, and
 * beside it a text that is wrapped there. Text is safe to show as it is.
 */

#include "client/frame/color.h"
#include "client/frame/command.h"

typedef struct Screen {
    Buffer *out;
    size_t width;
    bool colors;
} Screen;

Screen screen_of(Context *c);

/* "● name text": what the lines below it are about. */
void screen_title(const Screen *s, Color color, const char *name, const char *text);
/* "    Label: text". Without a label the text stands below the one before. The colour is the
 * label's. */
void screen_line(const Screen *s, const char *label, Color color, const char *text);
void screen_printf(const Screen *s, const char *label, const char *format, ...) _printf_(3, 4);
/* The content of a buffer, which is emptied. */
void screen_buffer(const Screen *s, const char *label, Buffer *text);

/* Text wrapped at `width`, its lines after the first indented; `column` is where it starts. */
void screen_wrap(Buffer *out, const char *text, size_t column, size_t indent, size_t width);
