/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "util/buffer.h"
#include "util/text.h"

/*
 * Many samples have the same innermost frame, so each frame is matched once. Cells of other frames
 * are removed; frames, stacks and texts stay, since they have numbers.
 */

enum { UNDECIDED, WANTED, LEFT_OUT };

typedef struct FrameMatcher {
    const FrameFilter *filter;
    const Profile *profile;
    const FrameNames *names;
    uint8_t *verdicts; /* of each frame */
    Buffer text;
} FrameMatcher;

bool frame_filter_is_set(const FrameFilter *filter) {
    return filter->n_dsos + filter->n_symbols + filter->n_srclines > 0;
}

/* A name may look like a pattern: "[kernel.kallsyms]", "operator*". */
static bool frame_filter_matches_text(const char *word, const char *text) {
    return strcmp(word, text) == 0 || fnmatch(word, text, 0) == 0;
}

static const char *frame_filter_text(FrameMatcher *matcher, Bytes bytes) {
    buffer_clear(&matcher->text);
    buffer_append(&matcher->text, bytes.data, bytes.size);
    text_putc(&matcher->text, '\0');
    return buffer_error(&matcher->text) ? "" : (const char *)matcher->text.data;
}

static bool frame_filter_has(FrameMatcher *matcher, const char *const *words, size_t n,
                             Bytes bytes) {
    const char *text = frame_filter_text(matcher, bytes);

    for (size_t i = 0; i < n; i++)
        if (frame_filter_matches_text(words[i], text))
            return true;
    return false;
}

static bool frame_filter_has_dso(FrameMatcher *matcher, uint32_t frame) {
    const FrameFilter *f = matcher->filter;
    const FrameTable *frames = matcher->profile->frames;
    const FrameMapping *mapping =
        frame_table_mapping(frames, frame_table_frame(frames, frame)->mapping);

    return f->n_dsos == 0 || frame_filter_has(matcher, f->dsos, f->n_dsos, mapping->dso) ||
           frame_filter_has(matcher, f->dsos, f->n_dsos, mapping->path);
}

/* The whole text, or what follows one of its slashes. */
static bool frame_filter_has_tail(const char *word, const char *text) {
    if (frame_filter_matches_text(word, text))
        return true;
    for (const char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/'))
        if (frame_filter_matches_text(word, slash + 1))
            return true;
    return false;
}

static bool frame_filter_has_line(FrameMatcher *matcher, const FrameLine *line) {
    const FrameFilter *f = matcher->filter;
    char *text;
    size_t n;

    if (line->file == 0)
        return false;
    buffer_clear(&matcher->text);
    buffer_append(&matcher->text, text_set_get(matcher->names->texts, line->file).data,
                  text_set_get(matcher->names->texts, line->file).size);
    n = matcher->text.size;
    text_printf(&matcher->text, ":%u", line->line);
    text_putc(&matcher->text, '\0');
    if (buffer_error(&matcher->text))
        return false;
    text = (char *)matcher->text.data;
    for (size_t i = 0; i < f->n_srclines; i++)
        if (frame_filter_has_tail(f->srclines[i], text))
            return true;
    text[n] = '\0';
    for (size_t i = 0; i < f->n_srclines; i++)
        if (frame_filter_has_tail(f->srclines[i], text))
            return true;
    return false;
}

/* One of the lines has to match both, or of two calls that were inlined each could match one. */
static bool frame_filter_has_place(FrameMatcher *matcher, uint32_t frame) {
    const FrameFilter *f = matcher->filter;
    const FrameName *name = &matcher->names->names[frame];

    for (uint32_t i = 0; i < name->n; i++) {
        const FrameLine *line = &matcher->names->lines[name->first + i];
        Bytes function = text_set_get(matcher->names->texts, line->function);

        if ((f->n_symbols == 0 || frame_filter_has(matcher, f->symbols, f->n_symbols, function)) &&
            (f->n_srclines == 0 || frame_filter_has_line(matcher, line)))
            return true;
    }
    return false;
}

static bool frame_filter_wants(FrameMatcher *matcher, uint32_t stack) {
    uint32_t frame;

    if (stack == STACK_ROOT)
        return false;
    frame = stack_tree_node(matcher->profile->stacks, stack)->frame;
    if (matcher->verdicts[frame] == UNDECIDED)
        matcher->verdicts[frame] =
            frame_filter_has_dso(matcher, frame) && frame_filter_has_place(matcher, frame)
                ? WANTED
                : LEFT_OUT;
    return matcher->verdicts[frame] == WANTED;
}

static void frame_filter_leave_out(Profile *profile, const ProfileCell *cell) {
    uint32_t event = profile->labels[cell->label].values[PROFILE_EVENT];

    profile->samples -= cell->samples;
    profile->left_out += cell->samples;
    if (event < profile->n_events) {
        profile->events[event].samples -= cell->samples;
        profile->events[event].period -= cell->period;
    }
}

int frame_filter_apply(const FrameFilter *filter, Profile *profile, const FrameNames *names) {
    FrameMatcher matcher = {.filter = filter, .profile = profile, .names = names};
    size_t kept = 0;
    int r;

    if (!frame_filter_is_set(filter))
        return 0;
    matcher.verdicts = calloc((size_t)frame_table_n_frames(profile->frames) + 1, 1);
    if (!matcher.verdicts)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_cells; i++) {
        ProfileCell cell = profile->cells[i];

        if (frame_filter_wants(&matcher, cell.stack))
            profile->cells[kept++] = cell;
        else
            frame_filter_leave_out(profile, &cell);
    }
    profile->n_cells = kept;
    r = buffer_error(&matcher.text);
    buffer_done(&matcher.text);
    free(matcher.verdicts);
    return r;
}
