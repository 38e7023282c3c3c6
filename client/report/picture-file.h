/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a page or an export goes: a file that appears complete or not at all, or stdout. */

#include "client/view/view.h"

typedef struct PictureOptions {
    const char *output; /* NULL: not given */
    bool force;
} PictureOptions;

/* clang-format off */
#define PICTURE_OPTIONS(type, member) \
    {'o', "output", "FILE", "Write to FILE; - is stdout", option_string, offsetof(type, member.output)}, \
    {'f', "force",  NULL,   "Replace FILE if it exists", option_flag, offsetof(type, member.force)},
/* clang-format on */

typedef struct Picture {
    const char *name;     /* of the command */
    const char *suffix;   /* of the file: ".html" */
    bool is_text;         /* may go to a terminal */
    bool is_file_default; /* without --output a file is written, else stdout */
} Picture;

typedef int (*PictureSink)(const void *data, size_t size, void *arg);
typedef int (*PictureWriter)(PictureSink sink, void *sink_arg, void *arg);

/* Complains if a result of this kind cannot be what the options say; an ExitStatus. */
int picture_check(const Context *c, const Picture *picture, const PictureOptions *options);
/* Complains about a key that is no label, which all have, or none of `keys`; an ExitStatus. */
int picture_check_keys(const Context *c, unsigned keys, const RowKeys *by);
/* Writes what `write` hands to its sink. If it goes to a file, prints the path on stdout. */
int picture_write(Context *c, const Picture *picture, const PictureOptions *options,
                  const View *view, PictureWriter write, void *arg);
/* The event to show where only one can be: that with most samples, with a remark about others. */
uint32_t picture_event(const Context *c, const View *view);
