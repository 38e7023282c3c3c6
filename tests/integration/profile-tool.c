/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/profile-builder.h"
#include "util/text.h"

/*
 * Makes a profile of recordings and prints it, for tests that hold it against perf.
 *
 * Usage: profile-tool [--quiet] [--keys KEY,…] [--stacks N] [--branch] FILE…
 *
 * Lines: "total SAMPLES PERIOD LOST FOLDED LEFT-OUT BROKEN", then "event NAME SAMPLES PERIOD LOST",
 * then "cell SAMPLES PERIOD KEY=VALUE… TAB FRAME;…", outermost frame first, a frame as
 * DSO+0xADDRESS, with a "~" where it is a return address.
 */

static const char *const keys[PROFILE_KEYS] = {"event",  "comm", "pid",       "tid", "cpu",
                                               "cgroup", "unit", "container", "time"};

static bool key_is_text(ProfileKey key) {
    return key == PROFILE_COMM || key == PROFILE_CGROUP || key == PROFILE_UNIT ||
           key == PROFILE_CONTAINER;
}

static void print_key(const Profile *profile, ProfileKey key, uint32_t value, Buffer *out) {
    text_printf(out, " %s=", keys[key]);
    if (value == PROFILE_NONE)
        text_puts(out, "-");
    else if (key == PROFILE_EVENT)
        text_escape(out, text_set_get(profile->texts, profile->events[value].name));
    else if (key_is_text(key))
        text_escape(out, text_set_get(profile->texts, value));
    else
        text_printf(out, "%" PRIu32, value);
}

static void print_stack(const Profile *profile, uint32_t stack, Buffer *out) {
    const StackNode *node = stack_tree_node(profile->stacks, stack);
    const FrameMapping *mapping;
    const Frame *frame;

    if (node->depth == 0)
        return;
    if (node->depth > 1) {
        print_stack(profile, node->parent, out);
        text_putc(out, ';');
    }
    frame = frame_table_frame(profile->frames, node->frame);
    mapping = frame_table_mapping(profile->frames, frame->mapping);
    text_escape(out, mapping->dso);
    text_printf(out, "+0x%" PRIx64 "%s", frame->address, frame->is_return ? "~" : "");
}

static void print_cell(const Profile *profile, const ProfileCell *cell, Buffer *out) {
    text_printf(out, "cell %" PRIu64 " %" PRIu64, cell->samples, cell->period);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (profile->keys & profile_key_bit(key))
            print_key(profile, key, profile->labels[cell->label].values[key], out);
    text_putc(out, '\t');
    print_stack(profile, cell->stack, out);
    text_putc(out, '\n');
}

static void print(const Profile *profile, bool quiet) {
    Buffer out = {};
    uint64_t period = 0;

    for (size_t i = 0; i < profile->n_cells; i++)
        period += profile->cells[i].period;
    text_printf(&out,
                "total %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                profile->samples, period, profile->lost, profile->folded, profile->left_out,
                profile->broken);
    for (size_t i = 0; i < profile->n_events; i++) {
        const ProfileEvent *event = &profile->events[i];

        text_puts(&out, "event ");
        text_escape(&out, text_set_get(profile->texts, event->name));
        text_printf(&out, " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", event->samples, event->period,
                    event->lost);
    }
    for (size_t i = 0; !quiet && i < profile->n_cells; i++) {
        print_cell(profile, &profile->cells[i], &out);
        if (out.size > 1 << 16) {
            fwrite(out.data, 1, out.size, stdout);
            buffer_clear(&out);
        }
    }
    fwrite(out.data, 1, out.size, stdout);
    if (quiet)
        fprintf(stderr, "%zu cells, %u nodes, %u frames, %u mappings\n", profile->n_cells,
                stack_tree_n_nodes(profile->stacks), frame_table_n_frames(profile->frames),
                frame_table_n_mappings(profile->frames));
    buffer_done(&out);
}

static unsigned parse_keys(char *list) {
    unsigned bits = 0;

    for (char *word = strtok(list, ","); word; word = strtok(NULL, ","))
        for (unsigned key = 0; key < PROFILE_KEYS; key++)
            if (strcmp(word, keys[key]) == 0)
                bits |= profile_key_bit(key);
    return bits;
}

static int read_file(ProfileBuilder *builder, const char *path) {
    PdReader *reader;
    PdDamage why;
    int r = pd_reader_open(path, NULL, &reader, &why);

    if (r >= 0) {
        r = profile_builder_begin(builder, reader);
        if (r >= 0)
            r = profile_builder_read(builder);
        pd_reader_free(reader);
    }
    if (r < 0)
        fprintf(stderr, "%s: %s\n", path, strerror(-r));
    return r;
}

int main(int argc, char **argv) {
    ProfileOptions options = {.keys = profile_key_bit(PROFILE_EVENT)};
    bool quiet = false;
    ProfileBuilder *builder;
    Profile *profile;
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--quiet") == 0)
            quiet = true;
        else if (strcmp(argv[at], "--branch") == 0)
            options.callers_in_branch = true;
        else if (strcmp(argv[at], "--keys") == 0 && at + 1 < argc)
            options.keys = parse_keys(argv[++at]);
        else if (strcmp(argv[at], "--stacks") == 0 && at + 1 < argc)
            options.stacks_max = (uint32_t)strtoul(argv[++at], NULL, 10);
        else
            return 2;
    }
    if (at == argc || profile_builder_new(&options, &builder) < 0)
        return 2;
    for (; at < argc; at++)
        if (read_file(builder, argv[at]) < 0)
            return 1;
    if (profile_builder_take(builder, &profile) < 0)
        return 1;
    print(profile, quiet);
    profile_free(profile);
    profile_builder_free(builder);
    return 0;
}
