/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page.h"

#include "make-profile.h"
#include "page/page-fold.h"
#include "test.h"
#include "util/buffer.h"

/* What a page has in it: its data to the byte, names that try to be more than text, failures. */

static int to_buffer(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

static int to_full_disk(const void *data, size_t size, void *arg) {
    return -ENOSPC;
}

static PageInput input_of(const MadeProfile *made) {
    return (PageInput){
        .profile = made->profile, .names = made->names, .event = PROFILE_NONE, .title = "db1"};
}

static const char *flame(const PageInput *input, const PageFlameOptions *options, Buffer *out) {
    if (page_flame_graph(input, options, to_buffer, out) < 0)
        abort();
    buffer_append(out, "", 1);
    return (const char *)out->data;
}

static size_t count_of(const char *text, const char *word) {
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

/* main() ran once itself, and three times called a function at two addresses. */
static MadeProfile make_small(unsigned keys, const char *called, FrameNaming naming) {
    MadeProfile made = make_profile(keys);
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/usr/bin/shop");
    uint32_t main_frame = make_frame(&made, mapping, 0x10, FRAME_NAMED, "main", NULL);
    uint32_t one = make_frame(&made, mapping, 0x20, naming, called, NULL);
    uint32_t other = make_frame(&made, mapping, 0x28, naming, called, NULL);
    const uint32_t stacks[][2] = {{main_frame, one}, {main_frame, other}};

    make_event(&made, "cycles", false);
    (void)make_label(&made);
    make_cell(&made, make_stack(&made, 1, &main_frame), 1, 100);
    make_cell(&made, make_stack(&made, 2, stacks[0]), 2, 200);
    make_cell(&made, make_stack(&made, 2, stacks[1]), 1, 300);
    return made;
}

TEST(nodes_are_levels_frames_and_weights) {
    _cleanup_(made_profile_done) MadeProfile made = make_small(0, "work", FRAME_NAMED);
    _cleanup_(buffer_done) Buffer out = {}, periods = {};
    PageInput input = input_of(&made);
    const char *text = flame(&input, NULL, &out);

    /* The root, main() once, work() three times one level above. */
    CHECK(strstr(text, "\"n_nodes\":3,\"nodes\":\"AAABABD\""));
    CHECK(strstr(text, "\"n_frames\":2,"));
    CHECK(strstr(text, "\"unit\":\"samples\""));
    input.by_period = true;
    text = flame(&input, NULL, &periods);
    /* 100 periods of 1 sample, 500 of 3. */
    CHECK(strstr(text, "\"nodes\":\"AAAAkDBAB0PD\""));
    CHECK(strstr(text, "\"unit\":\"events\""));
}

TEST(addresses_are_kept_apart_on_request) {
    _cleanup_(made_profile_done) MadeProfile made = make_small(0, "work", FRAME_NAMED);
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);

    CHECK(strstr(flame(&input, &(PageFlameOptions){.by_address = true}, &out), "\"n_frames\":3,"));
}

TEST(code_without_a_symbol_counts_as_its_file) {
    _cleanup_(made_profile_done) MadeProfile made = make_small(0, "shop+0x20", FRAME_UNNAMED);
    _cleanup_(buffer_done) Buffer out = {}, apart = {};
    PageInput input = input_of(&made);
    const char *text = flame(&input, NULL, &out);

    CHECK(strstr(text, "\"[shop]\"") && !strstr(text, "shop+0x20"));
    text = flame(&input, &(PageFlameOptions){.by_address = true}, &apart);
    CHECK(strstr(text, "shop+0x20"));
}

TEST(a_file_without_a_build_id_has_its_name_alone) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(0);
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);
    uint32_t frame = make_frame(&made, make_mapping(&made, FRAME_USER, "/shop[no-build-id]"), 0x10,
                                FRAME_UNNAMED, "shop+0x10", NULL);
    const char *text;

    (void)make_label(&made);
    make_cell(&made, make_stack(&made, 1, &frame), 1, 1);
    text = flame(&input, NULL, &out);
    CHECK(strstr(text, "\"shop\"") && strstr(text, "\"[shop]\"") && !strstr(text, "no-build-id"));
}

TEST(inlined_functions_are_boxes) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(0);
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);
    uint32_t frame = make_frame(&made, make_mapping(&made, FRAME_USER, "/shop"), 0x10, FRAME_NAMED,
                                "outer", "inner");

    (void)make_label(&made);
    make_cell(&made, make_stack(&made, 1, &frame), 1, 1);
    CHECK(strstr(flame(&input, NULL, &out), "\"n_nodes\":3,\"nodes\":\"AABAAAB\""));
}

TEST(a_difference_has_both_weights) {
    _cleanup_(made_profile_done) MadeProfile after = make_small(0, "work", FRAME_NAMED);
    _cleanup_(made_profile_done) MadeProfile before = make_small(0, "rest", FRAME_NAMED);
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&after), old = input_of(&before);
    const char *text = flame(&input, &(PageFlameOptions){.before = &old}, &out);

    /* main() 1 and 1, rest() 0 and 3, work() 3 and 0. */
    CHECK(strstr(text, "\"n_nodes\":4,\"nodes\":\"AAAABBABADBCDA\""));
    CHECK(strstr(text, "\"compared\":1,"));
}

TEST(names_cannot_leave_their_element) {
    _cleanup_(made_profile_done) MadeProfile made =
        make_small(0, "</script><script>alert(1)</script>\xff\x1b[2J\xe2\x80\xae", FRAME_NAMED);
    _cleanup_(buffer_done) Buffer out = {}, svg = {};
    PageInput input = input_of(&made);
    const char *text;

    input.title = "</title><img src=x onerror=alert(1)>";
    input.subtitle = "\"><script>";
    text = flame(&input, NULL, &out);
    CHECK_EQ(count_of(text, "</script>"), 2);
    CHECK(strstr(text, "\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\\\\xff\\\\x1b[2J"));
    CHECK(!strstr(text, "<img") && !strchr(text, '\x1b') && !strstr(text, "\xe2\x80\xae"));
    CHECK_EQ(page_flame_svg(&input, NULL, to_buffer, &svg), 0);
    buffer_append(&svg, "", 1);
    CHECK(!strstr((const char *)svg.data, "<script") && !strstr((const char *)svg.data, "<img"));
    CHECK(strstr((const char *)svg.data, "&lt;/script&gt;"));
}

TEST(facts_and_changes_are_escaped) {
    _cleanup_(made_profile_done) MadeProfile made =
        make_small(profile_key_bit(PROFILE_TIME), "work", FRAME_NAMED);
    static const PageFact fact = {"<b>Host", "a&b\x07"};
    static const char *const change = "<i>cc1 uses 2 CPUs.";
    PageIncident incident = {
        .input = input_of(&made), .facts = &fact, .n_facts = 1, .changes = &change, .n_changes = 1};
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_EQ(page_incident(&incident, to_buffer, &out), 0);
    buffer_append(&out, "", 1);
    CHECK(strstr((const char *)out.data, "<dt>&lt;b&gt;Host</dt><dd>a&amp;b\\x07</dd>"));
    CHECK(strstr((const char *)out.data, "<li>&lt;i&gt;cc1 uses 2 CPUs.</li>"));
    /* A page without a comparison does not say that nothing changed. */
    incident.n_changes = 0;
    buffer_clear(&out);
    CHECK_EQ(page_incident(&incident, to_buffer, &out), 0);
    buffer_append(&out, "", 1);
    CHECK(!strstr((const char *)out.data, "<li>") && !strstr((const char *)out.data, "<li "));
}

TEST(a_heat_map_has_spans_with_their_stacks) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(profile_key_bit(PROFILE_TIME));
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/shop"), stacks[2];
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);

    for (unsigned i = 0; i < 2; i++) {
        uint32_t frame = make_frame(&made, mapping, i, FRAME_NAMED, i ? "hot" : "cold", NULL);

        stacks[i] = make_stack(&made, 1, &frame);
    }
    make_label(&made)->values[PROFILE_TIME] = 3;
    make_cell(&made, stacks[0], 1, 1);
    make_cell(&made, stacks[1], 4, 4);
    CHECK_EQ(page_heat_map(&input, to_buffer, &out), 0);
    buffer_append(&out, "", 1);
    /* hot() is the first by samples. After three empty spans there are two stacks: the first with a
     * number of samples that follows, 4, and the next one with 1. */
    CHECK(strstr((const char *)out.data, "\"ranks\":\"CB\""));
    CHECK(strstr((const char *)out.data, "\"cells\":\"DCBEA\""));
    CHECK(strstr((const char *)out.data, "\"n_buckets\":4}"));
}

TEST(a_heat_map_needs_spans_of_time) {
    _cleanup_(made_profile_done) MadeProfile made = make_small(0, "work", FRAME_NAMED);
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);

    CHECK_EQ(page_heat_map(&input, to_buffer, &out), -EINVAL);
    CHECK_EQ(out.size, 0);
}

TEST(a_profile_without_samples_is_a_page) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(profile_key_bit(PROFILE_TIME));
    _cleanup_(buffer_done) Buffer out = {}, heat = {}, svg = {};
    PageInput input = input_of(&made);

    CHECK(strstr(flame(&input, NULL, &out), "\"n_nodes\":1,\"nodes\":\"A\""));
    CHECK_EQ(page_heat_map(&input, to_buffer, &heat), 0);
    CHECK_EQ(page_flame_svg(&input, NULL, to_buffer, &svg), 0);
}

TEST(rare_stacks_fold_into_other) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(0);
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/shop");
    _cleanup_(page_tree_freep) PageTree *tree = NULL;
    PageInput input = input_of(&made);
    uint64_t samples = 0;

    (void)make_label(&made);
    for (uint32_t i = 0; i < 100; i++) {
        char name[16];
        uint32_t frame;

        snprintf(name, sizeof(name), "f%u", i);
        frame = make_frame(&made, mapping, i, FRAME_NAMED, name, NULL);
        make_cell(&made, make_stack(&made, 1, &frame), i < 4 ? 1000 : 1, 1);
    }
    CHECK_EQ(page_tree_new(false, &tree), 0);
    CHECK_EQ(page_tree_add(tree, &input, false), 0);
    CHECK_EQ(page_tree_fold(tree, 10), 0);
    /* The root, four that are frequent, and [other]. */
    CHECK_EQ(stack_tree_n_nodes(tree->stacks), 6);
    CHECK_EQ(tree->folded, 96);
    for (size_t i = 0; i < tree->n_weights; i++)
        samples += tree->weights[i].samples;
    CHECK_EQ(samples, 4096);
    for (size_t i = 0; i < tree->n_cells; i++)
        CHECK(tree->cell_nodes[i] < 6);
}

/* A heat map of two samples so many spans of 20 ms apart. */
static const char *heat_apart(uint32_t distance, Buffer *out) {
    _cleanup_(made_profile_done) MadeProfile made =
        make_small(profile_key_bit(PROFILE_TIME), "work", FRAME_NAMED);
    PageInput input = input_of(&made);

    made.profile->bucket_ns = 20000000;
    made.profile->labels[0].values[PROFILE_TIME] = 0;
    make_label(&made)->values[PROFILE_TIME] = distance;
    made.profile->cells[2].label = 1;
    buffer_clear(out);
    if (page_heat_map(&input, to_buffer, out) < 0)
        abort();
    buffer_append(out, "", 1);
    return (const char *)out->data;
}

TEST(spans_are_joined_where_samples_lie_far_apart) {
    static const struct {
        uint32_t distance;
        const char *bucket, *n;
    } rows[] = {
        {9999998, "\"bucket_ns\":20000000,", "\"n_buckets\":9999999}"},
        {10000000, "\"bucket_ns\":40000000,", "\"n_buckets\":5000001}"},
        {249999998, "\"bucket_ns\":500000000,", "\"n_buckets\":10000000}"},
        {UINT32_MAX - 1, "\"bucket_ns\":86000000000,", "\"n_buckets\":998830}"},
    };
    _cleanup_(buffer_done) Buffer out = {};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *text = heat_apart(rows[i].distance, &out);

        CHECK(strstr(text, rows[i].bucket));
        CHECK(strstr(text, rows[i].n));
        CHECK(strstr(text, "\"n_filled\":2,"));
    }
}

/* The first sample is 940 ms after a second of the clock: 47 rows of its column are before it. */
TEST(a_column_of_a_heat_map_is_a_second_of_the_clock) {
    static const struct {
        bool real_known;
        uint64_t start_ns, real_offset;
        uint32_t distance;
        const char *n, *real, *bucket;
    } rows[] = {
        {true, 940000000, 0, 0, "\"n_buckets\":48}", "\"real_ms\":0,", "\"bucket_ns\":20000000,"},
        {true, 10, 5939999990, 3, "\"n_buckets\":51}", "\"real_ms\":5000,",
         "\"bucket_ns\":20000000,"},
        {true, 5940000000, 0, UINT32_MAX - 1, "\"n_buckets\":998830}", "\"real_ms\":5000,",
         "\"bucket_ns\":86000000000,"},
        /* Seconds since the start. */
        {false, 940000000, 0, 0, "\"n_buckets\":1}", "\"start_ms\":940,",
         "\"bucket_ns\":20000000,"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(made_profile_done) MadeProfile made =
            make_small(profile_key_bit(PROFILE_TIME), "work", FRAME_NAMED);
        _cleanup_(buffer_done) Buffer out = {};
        PageInput input = input_of(&made);

        made.profile->bucket_ns = 20000000;
        made.profile->start_ns = rows[i].start_ns;
        made.profile->real_offset = rows[i].real_offset;
        made.profile->real_known = rows[i].real_known;
        input.zone_min = -150;
        made.profile->labels[0].values[PROFILE_TIME] = rows[i].distance;
        CHECK_OK(page_heat_map(&input, to_buffer, &out));
        buffer_append(&out, "", 1);
        CHECK(strstr((const char *)out.data, rows[i].n));
        CHECK(strstr((const char *)out.data, rows[i].real));
        CHECK(strstr((const char *)out.data, rows[i].bucket));
        CHECK_EQ(strstr((const char *)out.data, "\"zone_min\":-150,") != NULL, rows[i].real_known);
    }
}

TEST(a_heat_map_says_that_it_has_folded_rare_stacks) {
    enum { STACKS = 90000, CELLS = (1 << 19) + 1 };
    _cleanup_(made_profile_done) MadeProfile made = make_profile(profile_key_bit(PROFILE_TIME));
    uint32_t mapping = make_mapping(&made, FRAME_USER, "/shop"), stack = STACK_ROOT;
    _cleanup_(buffer_done) Buffer out = {};
    PageInput input = input_of(&made);

    make_label(&made)->values[PROFILE_TIME] = 0;
    for (uint32_t i = 0; i < CELLS; i++) {
        if (i < STACKS) {
            char name[16];
            uint32_t frame;

            snprintf(name, sizeof(name), "f%u", i);
            frame = make_frame(&made, mapping, i, FRAME_NAMED, name, NULL);
            stack = make_stack(&made, 1, &frame);
        }
        make_cell(&made, stack, 1, 1);
    }
    CHECK_EQ(page_heat_map(&input, to_buffer, &out), 0);
    buffer_append(&out, "", 1);
    CHECK(strstr((const char *)out.data, "the rare stacks of "));
    CHECK(strstr((const char *)out.data, " samples are folded into [other]"));
}

TEST(a_sink_that_fails_ends_the_page) {
    _cleanup_(made_profile_done) MadeProfile made = make_small(0, "work", FRAME_NAMED);
    PageInput input = input_of(&made);

    CHECK_EQ(page_flame_graph(&input, NULL, to_full_disk, NULL), -ENOSPC);
    CHECK_EQ(page_flame_svg(&input, NULL, to_full_disk, NULL), -ENOSPC);
}

TEST_MAIN()
