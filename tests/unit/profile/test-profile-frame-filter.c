/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-filter.h"

#include "make-profile.h"
#include "test.h"

/* Three stacks: main -> price (inlined: tax, shop.h:7) 10 samples; main -> write in libc 4; and 1
 * without a frame. */
static MadeProfile make(void) {
    MadeProfile made = make_profile(profile_key_bit(PROFILE_EVENT));
    uint32_t event = make_event(&made, "cpu-clock", true);
    uint32_t app = make_mapping(&made, FRAME_USER, "/opt/shop/shop"),
             libc = make_mapping(&made, FRAME_USER, "/lib/libc.so.6");
    uint32_t frames[] = {make_frame(&made, app, 1, FRAME_NAMED, "main", NULL),
                         make_frame(&made, app, 2, FRAME_NAMED, "price<int, int>", "tax"),
                         make_frame(&made, libc, 3, FRAME_NAMED, "write", NULL)};

    make_label(&made)->values[PROFILE_EVENT] = event;
    make_cell(&made, make_stack(&made, 2, (uint32_t[]){frames[0], frames[1]}), 10, 100);
    make_cell(&made, make_stack(&made, 2, (uint32_t[]){frames[0], frames[2]}), 4, 40);
    make_cell(&made, STACK_ROOT, 1, 10);
    made.profile->events[event].samples = 15;
    made.profile->events[event].period = 150;
    return made;
}

/* Applies the filter; all counts have to agree. */
static void check_left(const FrameFilter *filter, uint64_t expected) {
    _cleanup_(made_profile_done) MadeProfile made = make();
    const ProfileEvent *event = &made.profile->events[0];
    uint64_t in_cells = 0;

    CHECK_OK(frame_filter_apply(filter, made.profile, made.names));
    for (size_t i = 0; i < made.profile->n_cells; i++)
        in_cells += made.profile->cells[i].samples;
    CHECK_EQ(made.profile->samples, expected);
    CHECK_EQ(in_cells, expected);
    CHECK_EQ(made.profile->left_out, 15 - expected);
    CHECK_EQ(event->samples, expected);
    CHECK_EQ(event->period, 10 * expected);
}

#define WORDS(...)                                                                                 \
    (const char *const[]) {                                                                        \
        __VA_ARGS__                                                                                \
    }

TEST(an_empty_filter_keeps_all) {
    check_left(&(FrameFilter){}, 15);
}

TEST(a_file_counts_by_its_name_its_path_or_a_pattern) {
    check_left(&(FrameFilter){.dsos = WORDS("libc.so.6"), .n_dsos = 1}, 4);
    check_left(&(FrameFilter){.dsos = WORDS("/lib/libc.so.6"), .n_dsos = 1}, 4);
    check_left(&(FrameFilter){.dsos = WORDS("lib*", "sho?"), .n_dsos = 2}, 14);
    check_left(&(FrameFilter){.dsos = WORDS("libc"), .n_dsos = 1}, 0);
}

TEST(only_the_innermost_function_counts) {
    check_left(&(FrameFilter){.symbols = WORDS("write"), .n_symbols = 1}, 4);
    check_left(&(FrameFilter){.symbols = WORDS("main"), .n_symbols = 1}, 0);
}

TEST(a_name_with_the_signs_of_a_pattern_matches_itself) {
    check_left(&(FrameFilter){.symbols = WORDS("price<int, int>"), .n_symbols = 1}, 10);
    check_left(&(FrameFilter){.symbols = WORDS("price<int? int>"), .n_symbols = 1}, 10);
}

TEST(a_function_that_was_inlined_there_counts) {
    check_left(&(FrameFilter){.symbols = WORDS("tax"), .n_symbols = 1}, 10);
}

TEST(a_line_counts_with_and_without_its_number) {
    check_left(&(FrameFilter){.srclines = WORDS("shop.h:7"), .n_srclines = 1}, 10);
    check_left(&(FrameFilter){.srclines = WORDS("shop.h"), .n_srclines = 1}, 10);
    check_left(&(FrameFilter){.srclines = WORDS("shop.h:8"), .n_srclines = 1}, 0);
    check_left(&(FrameFilter){.srclines = WORDS("op.h:7"), .n_srclines = 1}, 0);
}

TEST(all_lists_have_to_match) {
    FrameFilter filter = {
        .dsos = WORDS("shop"), .n_dsos = 1, .symbols = WORDS("write"), .n_symbols = 1};

    check_left(&filter, 0);
    filter.symbols = WORDS("tax");
    check_left(&filter, 10);
    /* The line is that of tax, not of the function around it. */
    filter.symbols = WORDS("price*");
    filter.srclines = WORDS("shop.h:7");
    filter.n_srclines = 1;
    check_left(&filter, 0);
}

TEST_MAIN()
