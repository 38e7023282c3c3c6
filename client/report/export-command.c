/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/report/picture-file.h"
#include "export/export.h"
#include "util/clock.h"

/*
 * The commands that write a profile in the format of another program. Each is a row of
 * export_formats: the format of a command is that of its name.
 */

typedef struct ExportSettings {
    ViewSettings view;
    PictureOptions picture;
} ExportSettings;

typedef struct ExportWork {
    const ExportFormat *format;
    ExportInput input;
} ExportWork;

static int export_command_write(PictureSink sink, void *sink_arg, void *arg) {
    const ExportWork *work = arg;

    return work->format->write(&work->input, sink, sink_arg);
}

/* A time by the wall clock on the clock of the recording; 0: not known. */
static uint64_t export_command_time_ns(const Profile *profile, uint64_t us) {
    return us > 0 && profile->real_known ? us * NS_PER_US - profile->real_offset : 0;
}

static int export_command_run(Context *c, void *settings, char **arguments) {
    const ExportSettings *s = settings;
    const ExportFormat *format = export_format_by_name(c->command);
    const Picture picture = {
        .name = format->name, .suffix = format->suffix, .is_text = format->is_text};
    ExportWork work = {.format = format};
    _cleanup_(view_done) View view = {};
    ViewRequest request = {.keys = s->view.by.n > 0 ? 0 : format->default_keys,
                           .bucket_ns = format->bucket_ns};
    int r, status = picture_check(c, &picture, &s->picture);

    if (status == STATUS_OK)
        status = picture_check_keys(c, format->keys, &s->view.by);
    if (status != STATUS_OK)
        return status;
    status = view_load(c, &s->view, arguments, &request, &view);
    if (!view.profile)
        return status;
    work.input = (ExportInput){.profile = view.profile,
                               .names = view.names,
                               .event = format->is_text ? picture_event(c, &view) : PROFILE_NONE,
                               .by_period = view_by_period(&s->view, !format->is_text),
                               .title = view.title,
                               .since_ns = export_command_time_ns(view.profile, view.since_us),
                               .until_ns = export_command_time_ns(view.profile, view.until_us)};
    view_remark_lost(c, &view, work.input.event);
    r = picture_write(c, &picture, &s->picture, &view, export_command_write, &work);
    return r != STATUS_OK ? r : status;
}

static void export_settings_done(void *settings) {
    view_settings_done(&((ExportSettings *)settings)->view);
}

/* A profile that is not text goes to stdout as it is, also from another host. */
static bool export_streams(const void *settings, char **arguments) {
    const ExportSettings *s = settings;

    return !s->picture.output || strcmp(s->picture.output, "-") == 0;
}

/* Lines of text on a terminal are shown with the name of the host before them. */
static bool export_text_streams(const void *settings, char **arguments) {
    return export_streams(settings, arguments) && !isatty(STDOUT_FILENO);
}

/* clang-format off */
static const Option export_options[] = {
    PICTURE_OPTIONS(ExportSettings, picture)
    VIEW_BY_OPTIONS(ExportSettings, view)
    VIEW_OPTIONS(ExportSettings, view)
    {},
};
/* clang-format on */

#define EXPORT_COMMAND(format, words, is_stream)                                                   \
    const Command command_##format = {                                                             \
        .name = #format,                                                                           \
        .group = COMMAND_VIEW,                                                                     \
        .arguments = "[FILE…]",                                                                    \
        .n_max = UINT_MAX,                                                                         \
        .summary = words,                                                                          \
        .notes = "FILE is a perf.data file, a folder of perf record --threads, or - for a stream " \
                 "on standard input. Without FILE it is what the running profd has recorded, by "  \
                 "default in the last five minutes.",                                              \
        .options = export_options,                                                                 \
        .settings_size = sizeof(ExportSettings),                                                   \
        .run = export_command_run,                                                                 \
        .done = export_settings_done,                                                              \
        .streams = is_stream,                                                                      \
    }

EXPORT_COMMAND(folded, "Write stacks as folded lines, the input of flame graph tools",
               export_text_streams);
EXPORT_COMMAND(pprof, "Write a profile for pprof, Pyroscope, Parca and other readers of its format",
               export_streams);
EXPORT_COMMAND(speedscope, "Write a profile for speedscope", export_text_streams);
EXPORT_COMMAND(firefox, "Write a profile for the Firefox Profiler", export_text_streams);
