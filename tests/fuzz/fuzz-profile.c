/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "fuzz.h"
#include "profile/profile-builder.h"

/*
 * A recording in any container becomes two profiles, with all labels and so few stacks that folding
 * happens often. Whatever comes, no sample is counted twice or lost on the way, and the limits
 * hold.
 */

enum { STACKS_MAX = 64, TAKEN_AT = 8 };

static int refuse(const FrameMapping *mapping, const UnwindTable **ret, void *arg) {
    (void)mapping;
    (void)ret;
    (void)arg;
    return -ENOENT;
}

static void check(bool holds) {
    if (!holds)
        abort();
}

static void check_profile(const Profile *p) {
    uint64_t samples = 0, of_events = 0;

    for (size_t i = 0; i < p->n_cells; i++) {
        check(p->cells[i].label < p->n_labels);
        check(p->cells[i].stack < stack_tree_n_nodes(p->stacks));
        samples += p->cells[i].samples;
    }
    for (size_t i = 0; i < p->n_events; i++) {
        of_events += p->events[i].samples;
        check(p->events[i].name < text_set_count(p->texts));
    }
    check(samples == p->samples && of_events == p->samples);
    check(p->folded <= p->samples && p->folded_labels <= p->samples);
    check(stack_tree_n_nodes(p->stacks) <= STACKS_MAX);
    for (uint32_t i = 1; i < stack_tree_n_nodes(p->stacks); i++) {
        const StackNode *node = stack_tree_node(p->stacks, i);

        check(node->parent < i && node->frame < frame_table_n_frames(p->frames));
    }
}

static void take(ProfileBuilder *builder) {
    _cleanup_(profile_freep) Profile *profile = NULL;

    if (profile_builder_take(builder, &profile) == 0)
        check_profile(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ProfileOptions options = {.keys = (1U << PROFILE_KEYS) - 1,
                                    .stacks_max = STACKS_MAX,
                                    .bucket_ns = 1000,
                                    .callers_in_branch = true,
                                    .unwind_table = refuse};
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(profile_builder_freep) ProfileBuilder *builder = NULL;
    PdRecord record;
    PdDamage why;

    if (pd_reader_open_memory((Bytes){.data = data, .size = size}, NULL, &reader, &why) < 0)
        return 0;
    if (profile_builder_new(&options, &builder) < 0 || profile_builder_begin(builder, reader) < 0)
        return 0;
    for (unsigned i = 0; i < TAKEN_AT && pd_reader_next(reader, &record) > 0; i++) {
        PdStamp stamp;

        if (pd_events_stamp(pd_reader_events(reader), &record, &stamp) < 0)
            stamp = (PdStamp){};
        if (profile_builder_feed(builder, &record, &stamp) < 0)
            return 0;
    }
    take(builder);
    if (profile_builder_read(builder) == 0)
        take(builder);
    return 0;
}
