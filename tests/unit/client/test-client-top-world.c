/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/top/top-world.h"

#include "client/top/top-table.h"
#include "make-profile.h"
#include "test.h"

/* What top remembers of profiles that come one after the other, and the tables made of it. */

#define KEYS (1U << PROFILE_EVENT | 1U << PROFILE_COMM)

static const uint64_t second = 1000000000;

/* A profile of one second with `samples` of a function of shop, and one of a function whose name is
 * that of the second. */
static MadeProfile make_second(uint64_t at_s, uint64_t samples) {
    MadeProfile made = make_profile(KEYS | 1U << PROFILE_TIME);
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/bin/shop"), frames[2];
    ProfileLabel *label;
    char name[32];

    snprintf(name, sizeof(name), "at_%u", (unsigned)at_s);
    frames[0] = make_frame(&made, mapping, 0x1000, FRAME_NAMED, "main", NULL);
    frames[1] = make_frame(&made, mapping, 0x100000 + at_s, FRAME_NAMED, name, NULL);
    made.profile->start_ns = at_s * second;
    (void)make_event(&made, "cpu-clock", true);
    label = make_label(&made);
    label->values[PROFILE_EVENT] = 0;
    label->values[PROFILE_COMM] = make_text(&made, "shop");
    label->values[PROFILE_TIME] = 0;
    make_cell(&made, make_stack(&made, 1, frames), samples, samples * 10000000);
    make_cell(&made, make_stack(&made, 2, frames), 1, 10000000);
    return made;
}

static void add_seconds(TopWorld *world, uint64_t first_s, uint64_t last_s) {
    for (uint64_t s = first_s; s <= last_s; s++) {
        _cleanup_(made_profile_done) MadeProfile made = make_second(s, 9);

        made.profile->lost = 1;
        made_ok(top_world_add(world, made.profile, (s + 1) * second));
    }
}

static void name_frames_by(TopWorld *world, void (*name_of)(uint64_t address, char ret[1024])) {
    const FrameTable *frames = world->merge.into->frames;

    made_ok(frame_names_new(&world->names));
    for (uint32_t i = 0; i < frame_table_n_frames(frames); i++) {
        uint64_t address = frame_table_frame(frames, i)->address;
        FrameLine line = {};
        char name[1024];

        name_of(address, name);
        made_ok(text_set_add(world->names->texts, made_bytes(name), &line.function));
        made_ok(frame_names_add(world->names, FRAME_NAMED, address, &line, 1));
    }
}

/* Names as the frames have them in make_second(). */
static void name_second(uint64_t address, char ret[1024]) {
    snprintf(ret, 1024, address == 0x1000 ? "main" : "at_%u", (unsigned)(address - 0x100000));
}

static void name_frames(TopWorld *world) {
    name_frames_by(world, name_second);
}

/* Two functions whose names differ only in their last letter, each with a caller of its own. */
static void name_long(uint64_t address, char ret[1024]) {
    bool is_caller = address & 0x100;
    size_t n = 600;

    if (is_caller)
        n = (size_t)snprintf(ret, 1024, "caller_of_");
    else
        memset(ret, 'x', n);
    snprintf(ret + n, 1024 - n, "%c", (char)(address & 0xff));
}

TEST(a_window_has_the_samples_of_its_seconds) {
    _cleanup_(top_world_done) TopWorld world;

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    add_seconds(&world, 100, 109);
    CHECK_OK(top_world_select(&world, 105 * second, 110 * second));
    CHECK_EQ(world.merge.into->samples, 50);
    CHECK_EQ(world.lost, 5);
    CHECK_EQ(world.merge.into->n_cells, 6);
    CHECK_OK(top_world_select(&world, 0, 110 * second));
    CHECK_EQ(world.merge.into->samples, 100);
    CHECK_EQ(world.merge.into->events[0].period, 1000000000);
    CHECK_EQ(world.merge.into->first_ns, 100 * second);
    CHECK_EQ(world.merge.into->n_labels, 1);
}

TEST(samples_that_come_late_are_put_where_they_belong) {
    _cleanup_(top_world_done) TopWorld world;
    _cleanup_(made_profile_done) MadeProfile late = make_second(101, 5);

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    add_seconds(&world, 100, 103);
    CHECK_OK(top_world_add(&world, late.profile, 104 * second));
    CHECK_OK(top_world_select(&world, 101 * second, 102 * second));
    CHECK_EQ(world.merge.into->samples, 16);
    CHECK_OK(top_world_select(&world, 102 * second, 104 * second));
    CHECK_EQ(world.merge.into->samples, 20);
}

TEST(a_window_has_the_gaps_in_it) {
    _cleanup_(top_world_done) TopWorld world;
    PdGap gap = {.from_ns = 90 * second, .to_ns = 99 * second, .cpu = PD_ALL_CPUS};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    CHECK_OK(top_world_note_gap(&world, &gap));
    add_seconds(&world, 100, 109);
    gap = (PdGap){.from_ns = 104 * second, .to_ns = PD_GAP_OPEN, .cpu = 1, .reason = PD_GAP_FAILED};
    CHECK_OK(top_world_note_gap(&world, &gap));
    CHECK_OK(top_world_select(&world, 0, 104 * second));
    CHECK_EQ(world.n_gaps, 0);
    CHECK_OK(top_world_select(&world, 105 * second, 110 * second));
    CHECK_EQ(world.n_gaps, 1);
    gap.to_ns = 106 * second;
    CHECK_OK(top_world_note_gap(&world, &gap));
    gap.reason = PD_GAP_OFFLINE;
    CHECK_OK(top_world_note_gap(&world, &gap));
    CHECK_OK(top_world_select(&world, 106 * second, 110 * second));
    CHECK_EQ(world.n_gaps, 0);
    CHECK_OK(top_world_select(&world, 0, 110 * second));
    CHECK_EQ(world.n_gaps, 1);
}

/* profd sends the gaps of a segment before its samples. */
TEST(a_gap_that_is_known_before_the_first_sample_counts) {
    _cleanup_(top_world_done) TopWorld world;
    PdGap gap = {.from_ns = 104 * second, .to_ns = 107 * second, .cpu = PD_ALL_CPUS};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    CHECK_OK(top_world_note_gap(&world, &gap));
    gap = (PdGap){.from_ns = 90 * second, .to_ns = 101 * second, .cpu = PD_ALL_CPUS};
    CHECK_OK(top_world_note_gap(&world, &gap));
    add_seconds(&world, 100, 103);
    add_seconds(&world, 107, 109);
    CHECK_OK(top_world_select(&world, 0, 110 * second));
    CHECK_EQ(world.n_gaps, 2);
    CHECK_EQ(world.recorded_ns, 6 * second);
    CHECK_OK(top_world_select(&world, 101 * second, 110 * second));
    CHECK_EQ(world.n_gaps, 1);
    CHECK_EQ(world.recorded_ns, 6 * second);
    CHECK_OK(top_world_select(&world, 107 * second, 110 * second));
    CHECK_EQ(world.n_gaps, 0);
    CHECK_EQ(world.recorded_ns, 3 * second);
}

TEST(gaps_have_a_bound) {
    _cleanup_(top_world_done) TopWorld world;

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    for (uint32_t i = 0; i < 3 * PD_GAPS_MAX; i++) {
        PdGap gap = {.from_ns = 100 * second + 4 * i, .cpu = i};

        gap.to_ns = gap.from_ns + 1;
        CHECK_OK(top_world_note_gap(&world, &gap));
    }
    CHECK_EQ(world.gaps.n_gaps, PD_GAPS_MAX);
}

TEST(figures_are_of_the_time_that_was_recorded) {
    _cleanup_(top_world_done) TopWorld world;
    _cleanup_(top_table_done) TopTable table = {};
    TopChoice choice = {.keys = {{PROFILE_COMM}, 1}, .by_period = true};
    PdGap gap = {.from_ns = 101 * second, .to_ns = 106 * second, .cpu = PD_ALL_CPUS};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    CHECK_OK(top_world_note_gap(&world, &gap));
    gap.cpu = 1;
    gap.to_ns = 107 * second;
    CHECK_OK(top_world_note_gap(&world, &gap));
    add_seconds(&world, 100, 100);
    add_seconds(&world, 106, 109);
    name_frames(&world);
    CHECK_OK(top_world_select(&world, 0, 110 * second));
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK_EQ(table.n_gaps, 2);
    CHECK_EQ((unsigned)(table.window_s * 10), 50);
    CHECK_EQ((unsigned)(table.cpus * 1000 + 0.5), 100);
}

/* On the clock of the samples it has no length. */
TEST(a_sleep_is_no_gap_of_the_seconds_before_it) {
    _cleanup_(top_world_done) TopWorld world;
    const PdGap gap = {
        .from_ns = 5 * second, .to_ns = 105 * second, .cpu = PD_ALL_CPUS, .reason = PD_GAP_ASLEEP};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    add_seconds(&world, 100, 109);
    CHECK_OK(top_world_note_gap(&world, &gap));
    CHECK_OK(top_world_select(&world, 0, 110 * second));
    CHECK_EQ(world.n_gaps, 0);
}

TEST(old_seconds_are_united_and_nothing_is_lost_by_it) {
    _cleanup_(top_world_done) TopWorld world;

    CHECK_OK(top_world_init(&world, KEYS, 100000, 1000000));
    add_seconds(&world, 1000, 1000 + 1999);
    CHECK(world.n_slices < 120 + 90 + 30);
    CHECK_OK(top_world_select(&world, 0, 3000 * second));
    CHECK_EQ(world.merge.into->samples, 20000);
    CHECK_EQ(world.lost, 2000);
}

TEST(what_is_older_than_an_hour_is_dropped) {
    _cleanup_(top_world_done) TopWorld world;

    CHECK_OK(top_world_init(&world, KEYS, 100000, 1000000));
    add_seconds(&world, 1000, 1000 + 4999);
    CHECK_EQ(world.begin_ns, world.slices[0].from_ns);
    CHECK(world.slices[0].to_ns >= (6000 - 3600 - 60) * second);
    CHECK(world.slices[0].from_ns <= (6000 - 3600) * second);
    CHECK_OK(top_world_select(&world, 0, 6000 * second));
    CHECK_EQ(world.merge.into->samples * second, 10 * (6000 * second - world.slices[0].from_ns));
}

TEST(stacks_and_cells_have_bounds) {
    _cleanup_(top_world_done) TopWorld world;

    CHECK_OK(top_world_init(&world, KEYS, 100, 300));
    add_seconds(&world, 1000, 1000 + 999);
    CHECK(stack_tree_n_nodes(world.merge.into->stacks) <= 100);
    CHECK(world.n_cells <= 300);
    CHECK_EQ(world.end_ns, 2000 * second);
    CHECK_OK(top_world_select(&world, 1990 * second, 2000 * second));
    CHECK_EQ(world.merge.into->samples, 100);
}

TEST(a_table_has_rows_that_a_filter_leaves_out) {
    _cleanup_(top_world_done) TopWorld world;
    TopTable table = {};
    TopChoice choice = {.keys = {{PROFILE_COMM, ROW_SYMBOL}, 2}, .filter = "AT_101"};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    add_seconds(&world, 100, 102);
    name_frames(&world);
    CHECK_OK(top_world_select(&world, 0, 103 * second));
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK_EQ(table.n, 1);
    CHECK_EQ(table.n_hidden, 3);
    CHECK_STREQ(top_table_cell(&table, &table.lines[0], 1), "at_101");
    CHECK_EQ(table.lines[0].samples, 1);
    CHECK_EQ(table.samples, 30);
    CHECK_EQ((int)(table.cpus * 100 + 0.5), 10);
    choice.filter[0] = '\0';
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK_EQ(table.n, 4);
    CHECK_STREQ(top_table_cell(&table, &table.lines[0], 1), "main");
    CHECK_EQ((int)(table.lines[0].self * 100 + 0.5), 90);
    CHECK_EQ((int)(table.lines[0].total * 100 + 0.5), 100);
    top_table_done(&table);
}

/* The text of a row of one cell. */
static Bytes one_cell(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text) + 1};
}

TEST(a_zoom_shows_callers_and_callees) {
    _cleanup_(top_world_done) TopWorld world;
    TopTable table = {};
    TopChoice choice = {.keys = {{ROW_SYMBOL}, 1}, .is_zoomed = true, .zoomed = one_cell("main")};

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    add_seconds(&world, 100, 102);
    name_frames(&world);
    CHECK_OK(top_world_select(&world, 0, 103 * second));
    choice.direction = TREE_CALLEES;
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK(table.has_zoom);
    CHECK_EQ(table.n, 3);
    CHECK(strncmp(top_table_cell(&table, &table.lines[0], 0), "at_10", 5) == 0);
    choice.zoomed = one_cell("at_102");
    choice.direction = TREE_CALLERS;
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK_EQ(table.n, 1);
    CHECK_STREQ(top_table_cell(&table, &table.lines[0], 0), "main");
    choice.zoomed = one_cell("gone");
    CHECK_OK(top_table_fill(&table, &world, &choice));
    CHECK(!table.has_zoom);
    CHECK_EQ(table.n, 0);
    top_table_done(&table);
}

TEST(a_zoom_shows_the_callers_of_the_function_whose_long_name_was_chosen) {
    _cleanup_(top_world_done) TopWorld world;
    _cleanup_(made_profile_done) MadeProfile made = make_profile(KEYS | 1U << PROFILE_TIME);
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/bin/shop");
    _cleanup_(buffer_done) Buffer zoomed = {};
    TopTable table = {};
    ProfileLabel *label;

    CHECK_OK(top_world_init(&world, KEYS, 10000, 100000));
    (void)make_event(&made, "cpu-clock", true);
    label = make_label(&made);
    label->values[PROFILE_EVENT] = label->values[PROFILE_TIME] = 0;
    for (char c = 'A'; c <= 'B'; c++) {
        uint32_t frames[] = {
            make_frame(&made, mapping, 0x1100 + (uint64_t)c, FRAME_NAMED, "caller", NULL),
            make_frame(&made, mapping, 0x1000 + (uint64_t)c, FRAME_NAMED, "callee", NULL)};

        make_cell(&made, make_stack(&made, 2, frames), 9, 90000000);
    }
    CHECK_OK(top_world_add(&world, made.profile, 103 * second));
    name_frames_by(&world, name_long);
    CHECK_OK(top_world_select(&world, 0, 103 * second));
    for (size_t i = 0; i < 2; i++) {
        TopChoice choice = {.keys = {{ROW_SYMBOL}, 1}, .direction = TREE_CALLERS};
        char caller[] = "caller_of_?";
        const char *name;

        CHECK_OK(top_table_fill(&table, &world, &choice));
        CHECK_EQ(table.n, 4);
        name = top_table_cell(&table, &table.lines[i], 0);
        CHECK_EQ(strlen(name), 601);
        caller[10] = name[600];
        buffer_clear(&zoomed);
        buffer_append(&zoomed, top_line_text(&table, &table.lines[i]).data, 602);
        choice.zoomed = buffer_bytes(&zoomed);
        choice.is_zoomed = true;
        CHECK_OK(top_table_fill(&table, &world, &choice));
        CHECK_EQ(table.n, 1);
        CHECK_STREQ(top_table_cell(&table, &table.lines[0], 0), caller);
    }
    top_table_done(&table);
}

TEST_MAIN()
