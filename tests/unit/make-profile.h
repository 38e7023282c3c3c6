/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Profiles made by hand, for tests of rooms that show them. Failures abort.
 */

#include <stdlib.h>
#include <string.h>

#include "profile/frame-names.h"
#include "profile/profile.h"
#include "util/array.h"

typedef struct MadeProfile {
    Profile *profile;
    FrameNames *names;
} MadeProfile;

static inline void made_ok(int r) {
    if (r < 0)
        abort();
}

static inline Bytes made_bytes(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

/* A profile that keeps these keys apart, with the window from second 100 to 102 and the wall clock
 * 1,000,000 s later. */
static inline MadeProfile make_profile(unsigned keys) {
    MadeProfile made = {.profile = calloc(1, sizeof(Profile))};

    if (!made.profile)
        abort();
    made.profile->keys = keys;
    made.profile->first_ns = made.profile->start_ns = 100000000000;
    made.profile->last_ns = 102000000000;
    made.profile->bucket_ns = 1000000000;
    made.profile->real_offset = 1000000000000000;
    made.profile->real_known = true;
    made_ok(frame_table_new(&made.profile->frames));
    made_ok(stack_tree_new(1 << 20, &made.profile->stacks));
    made_ok(text_set_new(&made.profile->texts));
    made_ok(frame_names_new(&made.names));
    return made;
}

static inline void made_profile_done(MadeProfile *made) {
    profile_free(made->profile);
    frame_names_free(made->names);
}

static inline uint32_t make_text(MadeProfile *made, const char *text) {
    uint32_t number;

    made_ok(text_set_add(made->profile->texts, made_bytes(text), &number));
    return number;
}

static inline uint32_t make_event(MadeProfile *made, const char *name, bool is_time) {
    ProfileEvent *event = array_grow(&made->profile->events, &made->profile->n_events);

    if (!event)
        abort();
    event->name = make_text(made, name);
    event->is_time = is_time;
    event->rate = 100;
    return (uint32_t)made->profile->n_events - 1;
}

static inline uint32_t make_mapping(MadeProfile *made, FrameKind kind, const char *path) {
    const char *slash = strrchr(path, '/');
    FrameMapping mapping = {
        .kind = kind, .path = made_bytes(path), .dso = made_bytes(slash ? slash + 1 : path)};
    uint32_t number;

    if (kind == FRAME_USER) {
        mapping.build_id_size = 20;
        memset(mapping.build_id, 0xab, sizeof(mapping.build_id));
        mapping.build_id[0] = (uint8_t)frame_table_n_mappings(made->profile->frames);
    }
    made_ok(frame_table_add_mapping(made->profile->frames, &mapping, &number));
    return number;
}

/* A frame of one or two lines, the inlined function first; `inlined` may be NULL. */
static inline uint32_t make_frame(MadeProfile *made, uint32_t mapping, uint64_t address,
                                  FrameNaming naming, const char *function, const char *inlined) {
    Frame frame = {.mapping = mapping, .address = address};
    FrameLine lines[2] = {};
    uint32_t number, n = 0;

    made_ok(frame_table_add(made->profile->frames, &frame, &number));
    if (inlined) {
        made_ok(text_set_add(made->names->texts, made_bytes(inlined), &lines[n].function));
        made_ok(text_set_add(made->names->texts, made_bytes("shop.h"), &lines[n].file));
        lines[n++].line = 7;
    }
    made_ok(text_set_add(made->names->texts, made_bytes(function), &lines[n++].function));
    made_ok(frame_names_add(made->names, naming, address, lines, n));
    return number;
}

static inline uint32_t make_stack(MadeProfile *made, size_t n, const uint32_t *outermost_first) {
    uint32_t node = STACK_ROOT;

    for (size_t i = 0; i < n; i++)
        made_ok(stack_tree_add(made->profile->stacks, node, outermost_first[i], &node));
    return node;
}

/* A label without values; the caller sets those it wants. */
static inline ProfileLabel *make_label(MadeProfile *made) {
    ProfileLabel *label = array_grow(&made->profile->labels, &made->profile->n_labels);

    if (!label)
        abort();
    memset(label, 0xff, sizeof(*label));
    return label;
}

/* With the label that was made last. */
static inline void make_cell(MadeProfile *made, uint32_t stack, uint64_t samples, uint64_t period) {
    ProfileCell *cell = array_grow(&made->profile->cells, &made->profile->n_cells);

    if (!cell)
        abort();
    *cell = (ProfileCell){.label = (uint32_t)made->profile->n_labels - 1,
                          .stack = stack,
                          .samples = samples,
                          .period = period};
    made->profile->samples += samples;
}
