/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "decode-pprof.h"
#include "make-shop.h"
#include "test.h"
#include "util/text.h"

/* What export_pprof() writes, read back by a decoder of our own. */

static void decode(const ExportInput *input, Decoded *ret) {
    _cleanup_(buffer_done) Buffer packed = {};

    if (export_format_by_name("pprof")->write(input, keep, &packed) < 0)
        abort();
    unpack(&packed, &ret->plain);
    decode_pprof(buffer_bytes(&ret->plain), ret);
}

static ExportInput input_of(const MadeProfile *made) {
    return (ExportInput){
        .profile = made->profile, .names = made->names, .event = PROFILE_NONE, .by_period = true};
}

TEST(ids_count_from_one_and_tables_hold_what_samples_use) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);

    decode(&input, &d);
    CHECK_EQ(d.n_mappings, 3);
    CHECK_EQ(d.n_locations, 6);
    CHECK_EQ(d.n_functions, 5);
    CHECK_EQ(d.n_samples, 4);
    for (size_t i = 0; i < d.n_mappings; i++)
        CHECK_EQ(get(d.mappings[i], 1, 0).value, i + 1);
    for (size_t i = 0; i < d.n_locations; i++)
        CHECK_EQ(get(d.locations[i], 1, 0).value, i + 1);
    for (size_t i = 0; i < d.n_functions; i++)
        CHECK_EQ(get(d.functions[i], 1, 0).value, i + 1);
    CHECK_EQ(d.strings[0].size, 0);
    CHECK(d.n_strings > 10);
}

TEST(a_sample_has_its_stack_values_and_labels) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);
    uint64_t v[VALUES_MAX], line;

    decode(&input, &d);
    CHECK_EQ(get_packed(d.samples[0], 1, v), 2);
    line = v[0];
    CHECK_STREQ(
        text_of(&d, d.functions[get(get(d.locations[line - 1], 4, 0).bytes, 1, 0).value - 1], 2),
        "add_up");
    CHECK_STREQ(
        text_of(&d, d.functions[get(get(d.locations[line - 1], 4, 1).bytes, 1, 0).value - 1], 2),
        "work<[u8; 4]>");
    CHECK_EQ(get(get(d.locations[line - 1], 4, 0).bytes, 2, 0).value, 7);
    CHECK_EQ(get_packed(d.samples[0], 2, v), 2);
    CHECK_EQ(v[0], 3);
    CHECK_EQ(v[1], 30);
    CHECK_STREQ(text_of(&d, get(d.samples[0], 3, 0).bytes, 1), "comm");
    CHECK_STREQ(text_of(&d, get(d.samples[0], 3, 0).bytes, 2), "shop");
    CHECK_STREQ(text_of(&d, get(d.samples[0], 3, 1).bytes, 1), "pid");
    CHECK_EQ(get(get(d.samples[0], 3, 1).bytes, 3, 0).value, 10);
    CHECK_STREQ(text_of(&d, get(d.samples[0], 3, 3).bytes, 1), "cpu");
    CHECK_STREQ(text_of(&d, get(d.samples[0], 3, 3).bytes, 4), "cpu");
}

TEST(values_have_the_types_of_their_events) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);
    uint64_t v[VALUES_MAX];

    (void)make_event(&made, "page-faults", false);
    (void)make_event(&made, "task-clock", true);
    make_label(&made)->values[PROFILE_EVENT] = 1;
    make_cell(&made, STACK_ROOT, 6, 600);
    decode(&input, &d);
    CHECK_EQ(d.n_types, 4);
    CHECK_STREQ(text_of(&d, d.types[0], 1), "samples");
    CHECK_STREQ(text_of(&d, d.types[1], 1), "cpu");
    CHECK_STREQ(text_of(&d, d.types[1], 2), "nanoseconds");
    CHECK_STREQ(text_of(&d, d.types[2], 1), "page_faults");
    CHECK_STREQ(text_of(&d, d.types[2], 2), "count");
    CHECK_STREQ(text_of(&d, d.types[3], 1), "task_clock");
    CHECK_EQ(get_packed(d.samples[2], 2, v), 4);
    CHECK(v[0] == 6 && v[1] == 0 && v[2] == 600 && v[3] == 0);
}

TEST(time_period_and_losses_are_stated) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {}, cut = {};
    ExportInput input = input_of(&made);

    made.profile->lost = 9;
    decode(&input, &d);
    CHECK_EQ(d.time, 1000100000000000);
    CHECK_EQ(d.duration, 2000000000);
    CHECK_EQ(d.period, 10000000);
    CHECK_STREQ(text_of(&d, d.types[1], 1), "cpu");
    CHECK(bytes_equal_str(d.strings[d.default_type], "cpu"));
    CHECK_EQ(d.n_comments, 1);
    CHECK(bytes_equal_str(d.strings[d.comments[0].data[0]], "9 samples were lost"));
    input.since_ns = 90000000000;
    input.until_ns = 150000000000;
    decode(&input, &cut);
    CHECK_EQ(cut.time, 1000090000000000);
    CHECK_EQ(cut.duration, 60000000000);
}

TEST(a_mapping_claims_symbols_only_where_all_frames_have_one) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);

    decode(&input, &d);
    for (size_t i = 0; i < d.n_mappings; i++) {
        bool is_shop = strcmp(text_of(&d, d.mappings[i], 5), "/usr/bin/shop") == 0;

        CHECK_EQ(get(d.mappings[i], 7, 0).value, is_shop ? 0 : 1);
        CHECK(get(d.mappings[i], 2, 0).value < get(d.mappings[i], 3, 0).value);
        if (is_shop) {
            CHECK_EQ(get(d.mappings[i], 2, 0).value, 0x1000);
            CHECK_EQ(get(d.mappings[i], 3, 0).value, 0x4000);
            CHECK_EQ(get(d.mappings[i], 4, 0).value, 0x1000);
            CHECK_STREQ(text_of(&d, d.mappings[i], 6), "00ababababababababababababababababababab");
        }
    }
}

TEST(every_string_is_valid_utf_8) {
    _cleanup_(made_profile_done) MadeProfile made = make_shop();
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);
    bool found = false;

    decode(&input, &d);
    for (size_t i = 0; i < d.n_strings; i++) {
        uint32_t c;

        for (size_t at = 0, n; at < d.strings[i].size; at += n) {
            n = text_code_point(d.strings[i].data + at, d.strings[i].size - at, &c);
            CHECK(n > 0);
        }
        found |= bytes_equal_str(d.strings[i], "wo\"r\\xff;k\\x5c\\x0a");
    }
    CHECK(found);
}

TEST(a_return_address_is_within_the_call) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(0);
    _cleanup_(decoded_done) Decoded d = {};
    ExportInput input = input_of(&made);
    FrameLine line = {};
    Frame frame = {
        .mapping = make_mapping(&made, FRAME_USER, "a"), .address = 0x2000, .is_return = true};
    uint32_t number;

    CHECK_OK(frame_table_add(made.profile->frames, &frame, &number));
    CHECK_OK(frame_names_add(made.names, FRAME_UNNAMED, 0x2000, &line, 1));
    (void)make_label(&made);
    make_cell(&made, make_stack(&made, 1, &number), 1, 1);
    decode(&input, &d);
    CHECK_EQ(get(d.locations[0], 3, 0).value, 0x1fff);
    CHECK_EQ(get(d.locations[0], 4, 0).bytes.size, 0);
    CHECK_EQ(get(d.mappings[0], 2, 0).value, 0x1000);
    CHECK_EQ(get(d.mappings[0], 3, 0).value, 0x2000);
}

TEST_MAIN()
