/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-text.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

/*
 * Splits text into headings and keys. inih splits Key=value and comments, but it has silent habits
 * that are prevented here: it cuts long lines and long section names, takes an indented line as a
 * continuation of the previous value, stays in the old section after an invalid heading, and
 * reports only the first bad line. So headings are parsed here, lines are passed to inih without
 * indentation, and a line is invalid if inih does not call the handler for it.
 */

typedef struct TextWalk {
    const ConfigReader *reader;
    const ConfigFile *file;
    ConfigPlace place;
    size_t offset;
    bool waiting; /* inih has the line and has not called the handler yet */
    int error;
} TextWalk;

/* The text between the brackets, which is terminated in place. NULL: not a heading. */
static char *config_text_heading(char *line) {
    char *end = strchr(line, ']'), *rest;

    if (!end)
        return NULL;
    rest = end + 1 + strspn(end + 1, " \t\r");
    if (*rest && *rest != '#' && *rest != ';')
        return NULL;
    *end = '\0';
    return line + 1;
}

static int config_text_on_key(void *userdata, const char *section _unused_, const char *name,
                              const char *value) {
    TextWalk *walk = userdata;

    if (!value)
        return 1;
    walk->waiting = false;
    walk->reader->on_key(walk->reader->userdata, &walk->place, name, value);
    return 1;
}

#define config_text_refuse(walk, ...)                                                              \
    (config_report_at(&(walk)->place, __VA_ARGS__), config_text_on_refused(walk))

static void config_text_on_refused(TextWalk *walk) {
    if (walk->reader->on_refused)
        walk->reader->on_refused(walk->reader->userdata, &walk->place);
}

static void config_text_end_line(TextWalk *walk) {
    if (walk->waiting)
        config_text_refuse(walk, "This line is no heading, no comment and no key: write Key=value");
    walk->waiting = false;
}

/* The text of the next line; it is empty if inih must not see it. */
static const char *config_text_take_line(TextWalk *walk, size_t *ret_n) {
    const char *from = walk->file->text + walk->offset;
    size_t left = walk->file->size - walk->offset, n;
    const char *end = memchr(from, '\n', left);

    n = end ? (size_t)(end - from) : left;
    walk->offset += n + (end ? 1 : 0);
    walk->place.line++;
    if (walk->place.line == 1 && n >= 3 && memcmp(from, "\xef\xbb\xbf", 3) == 0) {
        from += 3;
        n -= 3;
    }
    *ret_n = 0;
    if (memchr(from, '\0', n)) {
        config_text_refuse(walk, "This line holds a NUL byte: a configuration is text");
        return from;
    }
    for (; n > 0 && strchr(" \t", *from); from++, n--)
        ;
    if (n > CONFIG_LINE_MAX) {
        config_text_refuse(walk, "This line is too long: it may have %d characters at most",
                           CONFIG_LINE_MAX);
        return from;
    }
    *ret_n = n;
    return from;
}

/* Returns a line to inih like fgets(); an empty one if inih has nothing to do. */
static char *config_text_next_line(char *buffer, int size, void *userdata) {
    TextWalk *walk = userdata;
    const char *line;
    size_t n;

    config_text_end_line(walk);
    if (walk->error < 0 || walk->offset == walk->file->size)
        return NULL;
    line = config_text_take_line(walk, &n);
    assert(size > CONFIG_LINE_MAX + 1);
    memcpy(buffer, line, n);
    buffer[n] = '\0';
    if (buffer[0] == '[')
        walk->error = walk->reader->on_section(walk->reader->userdata, &walk->place,
                                               config_text_heading(buffer));
    walk->waiting = !strchr("[#;\r", buffer[0]);
    if (!walk->waiting)
        n = 0;
    strcpy(buffer + n, "\n");
    return buffer;
}

int config_text_read(ConfigFiles *files, const ConfigFile *file, const ConfigReader *reader) {
    TextWalk walk = {.reader = reader, .file = file, .place = {.files = files, .path = file->path}};
    int r = ini_parse_stream(config_text_next_line, &walk, config_text_on_key, &walk);

    if (walk.error < 0)
        return walk.error;
    return r < 0 ? -ENOMEM : 0;
}
