/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "client/report/picture-file.h"
#include "export/export.h"
#include "page/page.h"

/* `profctl flamegraph` and `profctl heatmap`: pages for a browser, one file each. */

/* A column of a heat map is a second, a row a fiftieth of it. */
#define HEAT_BUCKET_NS 20000000ULL

typedef struct FlameSettings {
    ViewSettings view;
    PictureOptions picture;
    bool svg, folded, icicle, by_address;
} FlameSettings;

typedef struct FlameWork {
    const FlameSettings *settings;
    PageInput input;
} FlameWork;

static int flame_command_write(PictureSink sink, void *sink_arg, void *arg) {
    const FlameWork *work = arg;
    const FlameSettings *s = work->settings;
    const PageFlameOptions options = {.by_address = s->by_address, .icicle = s->icicle};
    const ExportInput folded = {.profile = work->input.profile,
                                .names = work->input.names,
                                .event = work->input.event,
                                .by_period = work->input.by_period,
                                .title = work->input.title};

    if (s->folded)
        return export_format_by_name("folded")->write(&folded, sink, sink_arg);
    return s->svg ? page_flame_svg(&work->input, &options, sink, sink_arg)
                  : page_flame_graph(&work->input, &options, sink, sink_arg);
}

static int flame_heat_write(PictureSink sink, void *sink_arg, void *arg) {
    const FlameWork *work = arg;

    return page_heat_map(&work->input, sink, sink_arg);
}

static int flame_command_load(Context *c, const FlameSettings *s, char **arguments,
                              const ViewRequest *request, View *view, PageInput *ret) {
    int status = view_load(c, &s->view, arguments, request, view);

    if (!view->profile)
        return status;
    *ret = (PageInput){.profile = view->profile,
                       .names = view->names,
                       .event = picture_event(c, view),
                       .by_period = view_by_period(&s->view, !s->folded),
                       .title = view->title,
                       .subtitle = view->page_subtitle,
                       .zone_min = view->zone_min};
    return status;
}

/* Commands are at the bottom, unless --by names others. */
static unsigned flame_command_keys(const FlameSettings *s) {
    return s->view.by.n > 0 ? 0 : profile_key_bit(PROFILE_COMM);
}

static int flame_command_check(const Context *c, const FlameSettings *s, const Picture *picture) {
    unsigned keys = s->folded ? export_format_by_name("folded")->keys : PAGE_LABELS;
    int status = picture_check(c, picture, &s->picture);

    if (status == STATUS_OK && s->svg && s->folded)
        return complain(STATUS_USAGE, "Give either --svg or --folded.");
    if (status == STATUS_OK && s->folded && (s->icicle || s->by_address))
        return complain(STATUS_USAGE, "--icicle and --by-address are for pictures; leave out "
                                      "--folded.");
    return status != STATUS_OK ? status : picture_check_keys(c, keys, &s->view.by);
}

static int flame_command_run(Context *c, void *settings, char **arguments) {
    const FlameSettings *s = settings;
    const Picture picture = {
        .name = "flamegraph",
        .suffix = s->svg      ? ".svg"
                  : s->folded ? ".folded"
                              : ".html",
        .is_text = s->folded,
        .is_file_default = !s->folded,
    };
    const ViewRequest request = {.keys = flame_command_keys(s)};
    FlameWork work = {.settings = s};
    _cleanup_(view_done) View view = {};
    int r, status = flame_command_check(c, s, &picture);

    if (status != STATUS_OK)
        return status;
    status = flame_command_load(c, s, arguments, &request, &view, &work.input);
    if (!view.profile)
        return status;
    if (s->folded)
        view_remark_lost(c, &view, work.input.event);
    r = picture_write(c, &picture, &s->picture, &view, flame_command_write, &work);
    return r != STATUS_OK ? r : status;
}

static int flame_heat_run(Context *c, void *settings, char **arguments) {
    static const Picture picture = {.name = "heatmap", .suffix = ".html", .is_file_default = true};
    const FlameSettings *s = settings;
    const ViewRequest request = {.keys = profile_key_bit(PROFILE_TIME),
                                 .bucket_ns = HEAT_BUCKET_NS};
    FlameWork work = {.settings = s};
    _cleanup_(view_done) View view = {};
    int r, status = flame_command_check(c, s, &picture);

    if (status != STATUS_OK)
        return status;
    status = flame_command_load(c, s, arguments, &request, &view, &work.input);
    if (!view.profile)
        return status;
    r = picture_write(c, &picture, &s->picture, &view, flame_heat_write, &work);
    return r != STATUS_OK ? r : status;
}

static bool flame_streams(const void *settings, char **arguments) {
    const FlameSettings *s = settings;

    if (s->picture.output)
        return strcmp(s->picture.output, "-") == 0;
    return s->folded && !isatty(STDOUT_FILENO);
}

static void flame_settings_done(void *settings) {
    view_settings_done(&((FlameSettings *)settings)->view);
}

/* clang-format off */
static const Option flame_options[] = {
    {0,   "svg",        NULL, "Write a picture without a script", option_flag, offsetof(FlameSettings, svg)},
    {0,   "folded",     NULL, "Write folded text, as profctl folded does", option_flag, offsetof(FlameSettings, folded)},
    {0,   "icicle",     NULL, "Start with callers on top", option_flag, offsetof(FlameSettings, icicle)},
    {0,   "by-address", NULL, "Keep code of one function at different addresses apart", option_flag, offsetof(FlameSettings, by_address)},
    PICTURE_OPTIONS(FlameSettings, picture)
    VIEW_BY_OPTIONS(FlameSettings, view)
    VIEW_OPTIONS(FlameSettings, view)
    {},
};

static const Option heat_options[] = {
    PICTURE_OPTIONS(FlameSettings, picture)
    VIEW_BY_OPTIONS(FlameSettings, view)
    VIEW_OPTIONS(FlameSettings, view)
    {},
};
/* clang-format on */

#define FLAME_NOTES                                                                                \
    "FILE is a perf.data file, a folder of perf record --threads, or - for a stream on standard "  \
    "input. Without FILE it shows what the running profd has recorded, by default the last five "  \
    "minutes. The page needs no network. Without --output it gets a name of its own in the "       \
    "current folder, which is printed."

const Command command_flamegraph = {
    .name = "flamegraph",
    .group = COMMAND_VIEW,
    .arguments = "[FILE…]",
    .n_max = UINT_MAX,
    .summary = "Draw stacks as a flame graph, an HTML page",
    .notes = FLAME_NOTES,
    .options = flame_options,
    .settings_size = sizeof(FlameSettings),
    .run = flame_command_run,
    .done = flame_settings_done,
    .streams = flame_streams,
};

const Command command_heatmap = {
    .name = "heatmap",
    .group = COMMAND_VIEW,
    .arguments = "[FILE…]",
    .n_max = UINT_MAX,
    .summary = "Draw samples over time as a heat map, an HTML page",
    .notes = FLAME_NOTES,
    .options = heat_options,
    .settings_size = sizeof(FlameSettings),
    .run = flame_heat_run,
    .done = flame_settings_done,
    .streams = flame_streams,
};
