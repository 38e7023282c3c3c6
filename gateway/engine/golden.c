/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

/* A profile whose sums are known, as if it had been recorded: what an engine gives back of it shows
 * whether it understands what we send. */

enum { GOLDEN_PERIOD_NS = 10101010, GOLDEN_STACKS = 3 };

static const struct {
    const char *function;
    uint64_t address, samples;
} golden_stacks[GOLDEN_STACKS] = {
    {"main", 0x1000, 2},
    {"rec", 0x2000, 8},
    {"leaf", 0x3000, 40},
};

static Bytes golden_bytes(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

static int golden_label(Profile *profile) {
    ProfileLabel *label = profile->labels;
    int r;

    memset(label, 0xff, sizeof(*label));
    label->values[PROFILE_EVENT] = 0;
    label->values[PROFILE_PID] = 1;
    r = text_set_add(profile->texts, golden_bytes("profd-golden"), &label->values[PROFILE_COMM]);
    return r < 0 ? r
                 : text_set_add(profile->texts, golden_bytes("profd-golden.service"),
                                &label->values[PROFILE_UNIT]);
}

static int golden_event(Profile *profile, uint64_t samples) {
    profile->events[0] = (ProfileEvent){.is_time = true,
                                        .by_period = true,
                                        .rate = GOLDEN_PERIOD_NS,
                                        .samples = samples,
                                        .period = samples * GOLDEN_PERIOD_NS};
    return text_set_add(profile->texts, golden_bytes("cpu-clock"), &profile->events[0].name);
}

/* Each function is called by the one before it. */
static int golden_stack(Profile *profile, FrameNames *names, size_t number, uint32_t mapping,
                        uint32_t *node) {
    Frame frame = {.mapping = mapping, .address = golden_stacks[number].address};
    ProfileCell *cell = &profile->cells[number];
    FrameLine line = {};
    uint32_t added = 0;
    int r =
        text_set_add(names->texts, golden_bytes(golden_stacks[number].function), &line.function);

    if (r == 0)
        r = frame_names_add(names, FRAME_NAMED, frame.address, &line, 1);
    if (r == 0)
        r = frame_table_add(profile->frames, &frame, &added);
    if (r == 0)
        r = stack_tree_add(profile->stacks, *node, added, node);
    *cell = (ProfileCell){.stack = *node,
                          .samples = golden_stacks[number].samples,
                          .period = golden_stacks[number].samples * GOLDEN_PERIOD_NS};
    profile->samples += cell->samples;
    return r;
}

static int golden_fill(Profile *profile, FrameNames *names) {
    FrameMapping file = {.kind = FRAME_USER,
                         .path = golden_bytes("/usr/bin/profd-golden"),
                         .dso = golden_bytes("profd-golden"),
                         .build_id_size = FRAME_BUILD_ID_MAX};
    uint32_t mapping = 0, node = STACK_ROOT;
    int r;

    memset(file.build_id, 0x5a, sizeof(file.build_id));
    r = frame_table_add_mapping(profile->frames, &file, &mapping);
    for (size_t i = 0; i < GOLDEN_STACKS && r == 0; i++)
        r = golden_stack(profile, names, i, mapping, &node);
    if (r == 0)
        r = golden_event(profile, profile->samples);
    return r < 0 ? r : golden_label(profile);
}

static int golden_profile(Profile **ret) {
    _cleanup_(profile_freep) Profile *profile = calloc(1, sizeof(*profile));
    int r;

    if (!profile)
        return -ENOMEM;
    profile->keys = INTERVAL_KEYS;
    profile->events = calloc(1, sizeof(*profile->events));
    profile->labels = calloc(1, sizeof(*profile->labels));
    profile->cells = calloc(GOLDEN_STACKS, sizeof(*profile->cells));
    if (!profile->events || !profile->labels || !profile->cells)
        return -ENOMEM;
    profile->n_events = profile->n_labels = 1;
    profile->n_cells = GOLDEN_STACKS;
    r = frame_table_new(&profile->frames);
    if (r == 0)
        r = stack_tree_new(GOLDEN_STACKS + 1, &profile->stacks);
    if (r == 0)
        r = text_set_new(&profile->texts);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(profile);
    return 0;
}

int engine_golden(uint64_t since_ns, uint64_t until_ns, Interval **ret) {
    _cleanup_(profile_freep) Profile *profile = NULL;
    _cleanup_(frame_names_freep) FrameNames *names = NULL;
    Interval *interval;
    int r = golden_profile(&profile);

    if (r == 0)
        r = frame_names_new(&names);
    if (r == 0)
        r = golden_fill(profile, names);
    if (r < 0)
        return r;
    interval = calloc(1, sizeof(*interval));
    if (!interval)
        return -ENOMEM;
    *interval = (Interval){.references = 1, .since_ns = since_ns, .until_ns = until_ns};
    interval->profile = TAKE_PTR(profile);
    interval->names = TAKE_PTR(names);
    *ret = interval;
    return 0;
}
