/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/report/picture-file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/file/target.h"
#include "client/frame/output.h"
#include "util/text.h"

/* Pages and exports are written in blocks as they are made. Nothing binary goes to a terminal. */

enum { TITLE_MAX = 40 };

static bool picture_to_stdout(const Picture *picture, const PictureOptions *options) {
    return options->output ? strcmp(options->output, "-") == 0 : !picture->is_file_default;
}

int picture_check(const Context *c, const Picture *picture, const PictureOptions *options) {
    if (c->json != JSON_OFF)
        return complain(STATUS_USAGE, "This has a format of its own, leave out --json; 'profctl "
                                      "report --json' prints the same samples as rows.");
    if (picture_to_stdout(picture, options) && !picture->is_text && isatty(STDOUT_FILENO))
        return complain(STATUS_USAGE,
                        "This is not for a terminal; write it to a file with --output=%s%s, or "
                        "redirect stdout.",
                        picture->name, picture->suffix);
    if (options->force && picture_to_stdout(picture, options))
        return complain(STATUS_USAGE, "--force is for --output=FILE.");
    return STATUS_OK;
}

int picture_check_keys(const Context *c, unsigned keys, const RowKeys *by) {
    char words[128] = "";
    size_t n = 0;

    if (row_keys_have_frame(by))
        return complain(STATUS_USAGE,
                        "%s shows files and functions anyway; --by is for the labels of samples.",
                        c->command);
    if (!(row_keys_labels(by) & ~keys))
        return STATUS_OK;
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (keys & profile_key_bit(key) && n < sizeof(words))
            n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", n > 0 ? ", " : "",
                                  row_key_name(key));
    return complain(STATUS_USAGE, "%s cannot show all of these keys; it shows %s.", c->command,
                    words);
}

/* "flamegraph-web1-20261124-183000.html" in the current folder. */
static char *picture_make_name(const Picture *picture, const View *view) {
    char stamp[32], title[TITLE_MAX + 1];
    time_t now = time(NULL);
    struct tm tm;
    char *name;
    size_t n = 0;

    if (!localtime_r(&now, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) == 0)
        return NULL;
    for (const char *p = view->title; *p && n < TITLE_MAX; p++)
        title[n++] = (char)(isalnum((unsigned char)*p) || strchr("._-", *p) ? *p : '_');
    title[n] = '\0';
    return asprintf(&name, "%s-%s-%s%s", picture->name, title, stamp, picture->suffix) < 0 ? NULL
                                                                                           : name;
}

static int picture_sink(const void *data, size_t size, void *arg) {
    Output *out = arg;

    buffer_append(&out->buffer, data, size);
    return output_breathe(out);
}

static int picture_write_target(Target *target, PictureWriter write, void *arg) {
    Output out = output_to(target->fd);
    int r = write(picture_sink, &out, arg);

    if (r == 0)
        r = output_flush(&out);
    output_done(&out);
    return r < 0 ? r : target_commit(target);
}

static int picture_write_file(Context *c, const PictureOptions *options, const char *path,
                              PictureWriter write, void *arg) {
    _cleanup_(target_done) Target target = {.fd = -1};
    int r = target_open(&target, path, PD_LAYOUT_FILE, options->force);

    if (r == 0)
        r = picture_write_target(&target, write, arg);
    if (r < 0)
        return target_complain(&target, r);
    text_escape_str(&c->out.buffer, path);
    text_putc(&c->out.buffer, '\n');
    return STATUS_OK;
}

int picture_write(Context *c, const Picture *picture, const PictureOptions *options,
                  const View *view, PictureWriter write, void *arg) {
    _cleanup_free_ char *made = NULL;
    int r;

    if (picture_to_stdout(picture, options)) {
        if (picture->is_text)
            context_page(c);
        r = write(picture_sink, &c->out, arg);
        /* A failure of stdout is reported by the frame. */
        return r == 0 || c->out.error ? STATUS_OK
                                      : complain(STATUS_FAILED, "Failed to write the %s: %s.",
                                                 picture->name, strerror(-r));
    }
    if (!options->output) {
        made = picture_make_name(picture, view);
        if (!made)
            return complain(STATUS_FAILED, "Failed to name the file: %s.", strerror(ENOMEM));
    }
    return picture_write_file(c, options, made ? made : options->output, write, arg);
}

uint32_t picture_event(const Context *c, const View *view) {
    const Profile *p = view->profile;

    if (view->event != PROFILE_NONE && p->events[view->event].samples < p->samples) {
        _cleanup_(buffer_done) Buffer name = {};

        text_escape(&name, view_event_name(view, view->event));
        text_putc(&name, '\0');
        if (!buffer_error(&name))
            remark(c, "Of several events only %s is shown; --event=EVENT chooses another one.",
                   (const char *)name.data);
    }
    return view->event;
}
