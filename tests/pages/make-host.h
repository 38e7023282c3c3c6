/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes profiles by hand: frames by name, stacks of them, samples with labels. Without memory it
 * aborts, as a test may.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"
#include "util/array.h"

typedef struct MadeProfile {
    Profile *profile;
    FrameNames *names;
} MadeProfile;

static inline Bytes made_text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static inline void made_check(int r) {
    if (r < 0)
        abort();
}

static inline uint32_t made_string(TextSet *texts, Bytes text) {
    uint32_t number;

    made_check(text_set_add(texts, text, &number));
    return number;
}

static inline void made_done(MadeProfile *made) {
    made->profile = profile_free(made->profile);
    made->names = frame_names_free(made->names);
}

static inline MadeProfile make_profile(unsigned keys) {
    MadeProfile made = {.profile = calloc(1, sizeof(Profile))};

    if (!made.profile)
        abort();
    made.profile->keys = keys;
    made.profile->bucket_ns = 1000000000;
    made_check(frame_table_new(&made.profile->frames));
    made_check(stack_tree_new(1U << 23, &made.profile->stacks));
    made_check(text_set_new(&made.profile->texts));
    made_check(frame_names_new(&made.names));
    made.profile->first_ns = UINT64_MAX;
    return made;
}

static inline uint32_t made_event(MadeProfile *made, const char *name) {
    ProfileEvent *event = array_grow(&made->profile->events, &made->profile->n_events);

    if (!event)
        abort();
    event->name = made_string(made->profile->texts, made_text(name));
    return (uint32_t)made->profile->n_events - 1;
}

/* A frame with lines of functions, the innermost first; they are inlined but for the last. Frames
 * of one dso have one mapping. */
static inline uint32_t made_frame_lines(MadeProfile *made, FrameKind kind, const char *dso,
                                        uint64_t address, FrameNaming naming,
                                        const char *const *functions, uint32_t n) {
    FrameMapping mapping = {.kind = kind, .path = made_text(dso), .dso = made_text(dso)};
    Frame frame = {.address = address};
    FrameLine lines[8] = {};
    uint32_t number;

    made_check(frame_table_add_mapping(made->profile->frames, &mapping, &frame.mapping));
    made_check(frame_table_add(made->profile->frames, &frame, &number));
    if (number < made->names->n_names)
        return number;
    for (uint32_t i = 0; i < n && i < ARRAY_SIZE(lines); i++)
        lines[i].function = made_string(made->names->texts, made_text(functions[i]));
    made_check(frame_names_add(made->names, naming, address, lines, n));
    return number;
}

static inline uint32_t made_frame(MadeProfile *made, FrameKind kind, const char *dso,
                                  uint64_t address, const char *function) {
    return made_frame_lines(made, kind, dso, address, FRAME_NAMED, &function, 1);
}

static inline uint32_t made_push(MadeProfile *made, uint32_t stack, uint32_t frame) {
    made_check(stack_tree_add(made->profile->stacks, stack, frame, &stack));
    return stack;
}

static inline ProfileLabel made_no_label(void) {
    ProfileLabel label;

    memset(&label, 0xff, sizeof(label));
    return label;
}

/* Labels must be added in runs, or once each: only the last one is looked at. */
static inline uint32_t made_label(MadeProfile *made, const ProfileLabel *label) {
    Profile *profile = made->profile;
    ProfileLabel *added;

    if (profile->n_labels > 0 &&
        memcmp(&profile->labels[profile->n_labels - 1], label, sizeof(*label)) == 0)
        return (uint32_t)profile->n_labels - 1;
    added = array_grow(&profile->labels, &profile->n_labels);
    if (!added)
        abort();
    *added = *label;
    return (uint32_t)profile->n_labels - 1;
}

static inline void made_samples(MadeProfile *made, const ProfileLabel *label, uint32_t stack,
                                uint64_t samples, uint64_t period) {
    uint32_t number = made_label(made, label);
    ProfileCell *cell = array_grow(&made->profile->cells, &made->profile->n_cells);

    if (!cell)
        abort();
    *cell = (ProfileCell){.label = number, .stack = stack, .samples = samples, .period = period};
    made->profile->samples += samples;
}
