/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export.h"

#include <errno.h>
#include <jansson.h>

#include "make-shop.h"
#include "test.h"
#include "util/text.h"

/* The formats that are text, and what all formats have in common, on a profile made by hand. */

static int write_as(const char *name, const MadeProfile *made, bool by_period, Buffer *ret) {
    ExportInput input = {.profile = made->profile,
                         .names = made->names,
                         .event = PROFILE_NONE,
                         .by_period = by_period,
                         .title = "host"};

    return export_format_by_name(name)->write(&input, keep, ret);
}

static bool is_text(Buffer *b, const char *text) {
    text_putc(b, '\0');
    if (strcmp((const char *)b->data, text) == 0)
        return true;
    printf("# %s\n", b->data);
    return false;
}

static json_t *parse(const Buffer *b) {
    json_error_t error;
    json_t *json = json_loadb((const char *)b->data, b->size, JSON_REJECT_DUPLICATES, &error);

    if (!json)
        printf("# %s at %d\n", error.text, error.position);
    return json;
}

static double sum_of(const json_t *array) {
    double sum = 0;
    size_t i;
    json_t *item;

    json_array_foreach(array, i, item) sum += json_number_value(item);
    return sum;
}

TEST(each_row_of_the_table_is_complete) {
    unsigned n = 0;

    for (const ExportFormat *format = export_formats; format->name; format++, n++) {
        CHECK(export_format_by_name(format->name) == format);
        CHECK(format->suffix[0] == '.' && format->summary && format->write);
        CHECK_EQ(format->default_keys & ~format->keys, 0);
        CHECK_EQ((format->keys & profile_key_bit(PROFILE_TIME)) != 0, format->bucket_ns > 0);
    }
    CHECK_EQ(n, 4);
    CHECK(!export_format_by_name("svg"));
}

TEST(folded_lines_are_stacks_by_name) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {};

    for (size_t i = 0; i < made.profile->n_labels; i++)
        made.profile->labels[i].values[PROFILE_PID] = made.profile->labels[i].values[PROFILE_TID] =
            made.profile->labels[i].values[PROFILE_CPU] = PROFILE_NONE;
    CHECK_OK(write_as("folded", &made, false, &out));
    CHECK(is_text(&out, "shop;main;work<[u8: 4]>;add_up 5\n"
                        "shop.service;wo\"r\\xff:k\\x5c\\x0a;main;shop+0x3000;read 1\n"
                        "shop.service;wo\"r\\xff:k\\x5c\\x0a;old.so+0x10 [replaced] 1\n"));
}

TEST(folded_lines_weigh_periods_and_show_all_labels) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {};

    made.profile->n_cells = 2;
    CHECK_OK(write_as("folded", &made, true, &out));
    CHECK(is_text(&out, "shop;pid 10;tid 10;cpu 0;main;work<[u8: 4]>;add_up 50\n"));
}

TEST(folded_lines_name_the_event_where_there_are_several) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(UINT32_MAX);
    _cleanup_(buffer_done) Buffer out = {};
    uint32_t frame =
        make_frame(&made, make_mapping(&made, FRAME_USER, "a"), 1, FRAME_NAMED, "f", NULL);
    ExportInput input = {.profile = made.profile, .names = made.names, .event = 1};

    (void)make_event(&made, "cycles", false);
    (void)make_event(&made, "faults", false);
    for (uint32_t event = 0; event < 2; event++) {
        make_label(&made)->values[PROFILE_EVENT] = event;
        make_cell(&made, make_stack(&made, 1, &frame), 1 + event, 7);
    }
    make_cell(&made, STACK_ROOT, 4, 7);
    CHECK_OK(write_as("folded", &made, false, &out));
    CHECK(is_text(&out, "cycles;f 1\nfaults;f 2\nfaults 4\n"));
    buffer_clear(&out);
    CHECK_OK(export_format_by_name("folded")->write(&input, keep, &out));
    CHECK(is_text(&out, "f 2\n[no stack] 4\n"));
}

TEST(speedscope_has_the_stacks_of_all_samples) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {};
    json_t *json, *profile, *frames, *stack;
    const char *names[] = {"shop", "pid 10", "tid 10", "cpu 0", "main", "work<[u8; 4]>", "add_up"};

    CHECK_OK(write_as("speedscope", &made, true, &out));
    json = parse(&out);
    CHECK(json);
    profile = json_array_get(json_object_get(json, "profiles"), 0);
    frames = json_object_get(json_object_get(json, "shared"), "frames");
    CHECK_EQ(json_array_size(json_object_get(json, "profiles")), 1);
    CHECK_STREQ(json_string_value(json_object_get(profile, "unit")), "nanoseconds");
    CHECK_STREQ(json_string_value(json_object_get(profile, "name")), "cpu-clock:u");
    CHECK_EQ(sum_of(json_object_get(profile, "weights")), WORK_PERIOD + OTHER_PERIOD);
    CHECK_EQ(json_integer_value(json_object_get(profile, "endValue")), WORK_PERIOD + OTHER_PERIOD);
    CHECK_EQ(json_array_size(json_object_get(profile, "samples")), 4);
    stack = json_array_get(json_object_get(profile, "samples"), 0);
    CHECK_EQ(json_array_size(stack), 7);
    for (size_t i = 0; i < 7; i++) {
        size_t frame = (size_t)json_integer_value(json_array_get(stack, i));

        CHECK_STREQ(json_string_value(json_object_get(json_array_get(frames, frame), "name")),
                    names[i]);
    }
    json_decref(json);
}

/* The stack of a sample of a thread, by names, the innermost first. */
static void firefox_stack(const json_t *json, size_t thread, size_t sample, Buffer *ret) {
    const json_t *shared = json_object_get(json, "shared");
    const json_t *stacks = json_object_get(shared, "stackTable");
    const json_t *frames = json_object_get(shared, "frameTable");
    const json_t *at = json_array_get(
        json_object_get(
            json_object_get(json_array_get(json_object_get(json, "threads"), thread), "samples"),
            "stack"),
        sample);

    while (json_is_integer(at)) {
        size_t row = (size_t)json_integer_value(at);
        size_t frame =
            (size_t)json_integer_value(json_array_get(json_object_get(stacks, "frame"), row));
        size_t function =
            (size_t)json_integer_value(json_array_get(json_object_get(frames, "func"), frame));
        size_t name = (size_t)json_integer_value(json_array_get(
            json_object_get(json_object_get(shared, "funcTable"), "name"), function));

        text_printf(
            ret, "%s;",
            json_string_value(json_array_get(json_object_get(shared, "stringArray"), name)));
        at = json_array_get(json_object_get(stacks, "prefix"), row);
    }
}

/* All columns of a table have as many rows as it says. */
static bool is_even(const json_t *table) {
    json_int_t length = json_integer_value(json_object_get(table, "length"));
    const char *name;
    json_t *column;

    json_object_foreach((json_t *)table, name, column) {
        if (json_is_array(column) && (json_int_t)json_array_size(column) != length) {
            printf("# %s has %zu rows\n", name, json_array_size(column));
            return false;
        }
    }
    return true;
}

TEST(firefox_has_threads_with_samples_in_time) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {}, stack = {};
    json_t *json, *threads, *thread, *samples, *table;
    const char *name;

    CHECK_OK(write_as("firefox", &made, true, &out));
    json = parse(&out);
    CHECK(json);
    json_object_foreach(json_object_get(json, "shared"), name, table) {
        CHECK(json_is_array(table) || is_even(table));
    }
    threads = json_object_get(json, "threads");
    CHECK_EQ(json_array_size(threads), 2);
    thread = json_array_get(threads, 1);
    samples = json_object_get(thread, "samples");
    CHECK(is_even(samples));
    CHECK_STREQ(json_string_value(json_object_get(thread, "name")), "wo\"r\\xff;k\\x5c\\x0a");
    CHECK_STREQ(json_string_value(json_object_get(thread, "processName")),
                "wo\"r\\xff;k\\x5c\\x0a (shop.service)");
    CHECK_STREQ(json_string_value(json_object_get(thread, "pid")), "10");
    CHECK_EQ(json_number_value(json_array_get(json_object_get(samples, "time"), 0)), 1000);
    CHECK_EQ((int)(sum_of(json_object_get(samples, "weight")) * 1e6 + 0.5), OTHER_PERIOD);
    CHECK(json_number_value(json_object_get(json_object_get(json, "meta"), "startTime")) ==
          1000100000);
    firefox_stack(json, 0, 1, &stack);
    CHECK(is_text(&stack, "add_up;work<[u8; 4]>;main;"));
    json_decref(json);
}

TEST(firefox_names_what_has_no_thread_and_spans_that_became_longer) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {};
    json_t *json, *threads;
    bool found = false;

    memset(&made.profile->labels[0], 0xff, sizeof(made.profile->labels[0]));
    made.profile->labels[0].values[PROFILE_EVENT] = 0;
    made.profile->folded_labels = made.profile->cells[0].samples;
    made.profile->bucket_ns = 200000000;
    CHECK_OK(write_as("firefox", &made, true, &out));
    json = parse(&out);
    CHECK(json);
    threads = json_object_get(json, "threads");
    for (size_t i = 0; i < json_array_size(threads); i++)
        found |= strcmp(json_string_value(json_object_get(json_array_get(threads, i), "name")),
                        "[other] rare threads, without times") == 0;
    CHECK(found);
    CHECK_EQ(json_number_value(json_object_get(json_object_get(json, "meta"), "interval")), 200);
    json_decref(json);
}

TEST(an_empty_profile_is_written_whole) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(0);
    _cleanup_(buffer_done) Buffer out = {};
    json_t *json;

    made.profile->first_ns = 1;
    made.profile->last_ns = 0;
    for (const ExportFormat *format = export_formats; format->name; format++) {
        buffer_clear(&out);
        CHECK_OK(write_as(format->name, &made, true, &out));
        if (format->is_text && out.size > 0) {
            json = parse(&out);
            CHECK(json);
            json_decref(json);
        }
    }
}

TEST(a_sink_that_fails_ends_each_export) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    ExportInput input = {.profile = made.profile, .names = made.names, .event = PROFILE_NONE};

    for (const ExportFormat *format = export_formats; format->name; format++) {
        unsigned calls = 0;

        CHECK_EQ(format->write(&input, refuse, &calls), -EPIPE);
        CHECK_EQ(calls, 1);
    }
}

TEST(names_of_another_profile_are_refused) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(buffer_done) Buffer out = {};

    made.names->n_names--;
    for (const ExportFormat *format = export_formats; format->name; format++)
        CHECK_EQ(write_as(format->name, &made, false, &out), -EINVAL);
}

TEST_MAIN()
