/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/engine.h"

#include <jansson.h>

#include "decode-pprof.h"
#include "export/make-shop.h"
#include "make-series.h"
#include "test.h"
#include "util/text.h"

/* Requests for engines that take pprof, decoded by hand. */

enum { MANY = 70000, PERIOD = 10 };

/* The shop: a service of its first thread, and one of the other. */
static MadeSeries make_shop_series(const MadeProfile *shop) {
    MadeSeries made = make_series_list(shop);

    made_ok(label_set_put(&make_series(&made, "shop", 0, 0, 0)->labels, "comm", "shop"));
    (void)make_series(&made, "till", 0, 1, 1);
    return made;
}

/* One label with this many stacks of one frame, which have 1, 2, 3 … samples. */
static MadeProfile make_many(uint32_t n) {
    MadeProfile made = make_profile(INTERVAL_KEYS);
    uint32_t file = make_mapping(&made, FRAME_USER, "/usr/bin/many");
    char name[32];

    (void)make_event(&made, "cpu-clock", true);
    make_label(&made)->values[PROFILE_EVENT] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t frame;

        (void)snprintf(name, sizeof(name), "function_%u", i);
        frame = make_frame(&made, file, 0x1000 + i, FRAME_NAMED, name, NULL);
        make_cell(&made, make_stack(&made, 1, &frame), i + 1, (i + 1) * PERIOD);
    }
    return made;
}

/* The value of a label of a series in a push; "": there is none. */
static const char *label_of(Bytes series, const char *name) {
    static char text[2048];

    for (size_t i = 0; i < count(series, 1); i++) {
        Bytes label = get(series, 1, i).bytes, value = get(label, 2, 0).bytes;

        if (!bytes_equal_str(get(label, 1, 0).bytes, name) || value.size >= sizeof(text))
            continue;
        memcpy(text, value.data, value.size);
        text[value.size] = '\0';
        return text;
    }
    return "";
}

/* The n-th profile of the n-th series of a push. */
static Bytes profile_of(const Buffer *body, size_t series, size_t sample) {
    return get(get(get(buffer_bytes(body), 1, series).bytes, 2, sample).bytes, 1, 0).bytes;
}

static uint64_t sum_of(Bytes profile, unsigned column) {
    Cursor c = cursor_of(profile.data, profile.size, false);
    uint64_t sum = 0, v[VALUES_MAX];
    Field field;

    while (take_field(&c, &field))
        if (field.number == 2 && get_packed(field.bytes, 2, v) > column)
            sum += v[column];
    return sum;
}

/* The name of the innermost function of a sample. */
static const char *leaf_of(const Decoded *d, size_t sample) {
    uint64_t v[VALUES_MAX];
    Bytes line;

    if (get_packed(d->samples[sample], 1, v) == 0)
        return "";
    line = get(d->locations[v[0] - 1], 4, 0).bytes;
    return text_of(d, d->functions[get(line, 1, 0).value - 1], 2);
}

TEST(each_row_of_the_table_is_complete) {
    for (const Engine *engine = engines; engine->name; engine++) {
        CHECK(engine_by_name(engine->name) == engine);
        CHECK(engine->encode);
        CHECK_EQ(!engine->path, !engine->content_type);
    }
    CHECK(!engine_by_name("graphite"));
}

TEST(pyroscope_gets_a_series_with_labels_name_and_exact_times) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Decoded d = {};
    Bytes first;

    CHECK_EQ(encode("pyroscope", &made, (EngineInput){}, &body), 2);
    first = get(buffer_bytes(&body), 1, 0).bytes;
    CHECK_EQ(count(buffer_bytes(&body), 1), 2);
    CHECK_EQ(count(first, 1), 4);
    CHECK_STREQ(label_of(first, "__name__"), "process_cpu");
    CHECK_STREQ(label_of(first, "service_name"), "shop");
    CHECK_STREQ(label_of(first, "host"), "web1");
    CHECK_STREQ(label_of(first, "comm"), "shop");
    CHECK_EQ(count(first, 2), 1);
    decode_pprof(profile_of(&body, 0, 0), &d);
    CHECK_EQ(d.n_samples, 2);
    CHECK_EQ(d.time, made.interval.since_ns);
    CHECK_EQ(d.duration, 10000000000);
    CHECK_EQ(d.n_types, 2);
    CHECK_STREQ(text_of(&d, d.types[1], 1), "cpu");
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 0), WORK_SAMPLES);
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 1), WORK_PERIOD);
    CHECK_EQ(sum_of(profile_of(&body, 1, 0), 0), OTHER_SAMPLES);
}

TEST(a_part_of_a_profile_has_tables_of_its_own) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Decoded d = {}, second = {};

    (void)encode("pyroscope", &made, (EngineInput){}, &body);
    decode_pprof(profile_of(&body, 0, 0), &d);
    decode_pprof(profile_of(&body, 1, 0), &second);
    CHECK_EQ(d.n_mappings, 1);
    CHECK_EQ(d.n_locations, 3);
    CHECK_EQ(second.n_mappings, 3);
    CHECK_EQ(second.n_locations, 4);
    for (size_t i = 0; i < second.n_locations; i++)
        CHECK_EQ(get(second.locations[i], 1, 0).value, i + 1);
    for (size_t i = 0; i < second.n_functions; i++)
        CHECK_EQ(get(second.functions[i], 1, 0).value, i + 1);
    CHECK_EQ(second.strings[0].size, 0);
    CHECK_STREQ(leaf_of(&d, 0), "add_up");
    CHECK_STREQ(leaf_of(&second, 0), "read");
}

TEST(samples_have_numbers_as_labels_and_no_texts) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Decoded d = {};

    (void)encode("pyroscope", &made, (EngineInput){}, &body);
    decode_pprof(profile_of(&body, 1, 0), &d);
    for (size_t i = 0; i < d.n_samples; i++) {
        CHECK_EQ(count(d.samples[i], 3), 2);
        CHECK_STREQ(text_of(&d, get(d.samples[i], 3, 0).bytes, 1), "pid");
        CHECK_EQ(get(get(d.samples[i], 3, 0).bytes, 3, 0).value, 10);
        CHECK_EQ(get(get(d.samples[i], 3, 1).bytes, 3, 0).value, 11);
        for (size_t k = 0; k < 2; k++)
            CHECK_EQ(get(get(d.samples[i], 3, k).bytes, 2, 0).value, 0);
    }
}

TEST(a_frame_without_a_symbol_is_named_by_its_file_and_keeps_its_build_id) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    bool named = false, mapped = false;
    Decoded d = {};

    (void)encode("pyroscope", &made, (EngineInput){}, &body);
    decode_pprof(profile_of(&body, 1, 0), &d);
    for (size_t i = 0; i < d.n_functions; i++)
        named |= strcmp(text_of(&d, d.functions[i], 2), "shop+0x3000") == 0;
    for (size_t i = 0; i < d.n_mappings; i++)
        mapped |=
            strcmp(text_of(&d, d.mappings[i], 6), "00ababababababababababababababababababab") == 0;
    CHECK(named && mapped);
    for (size_t i = 0; i < d.n_locations; i++)
        CHECK(count(d.locations[i], 4) > 0 && get(d.locations[i], 3, 0).value > 0);
}

TEST(events_name_their_series_without_signs) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(buffer_done) Buffer body = {};
    Decoded d = {};

    (void)make_event(&made, "cpu-clock", true);
    (void)make_event(&made, "cache-misses:u", false);
    make_label(&made)->values[PROFILE_EVENT] = 1;
    make_cell(&made, STACK_ROOT, 3, 3000);
    _cleanup_(made_series_done) MadeSeries series = make_series_list(&made);
    (void)make_series(&series, "shop", 1, 0, 0);
    (void)encode("pyroscope", &series, (EngineInput){}, &body);
    CHECK_STREQ(label_of(get(buffer_bytes(&body), 1, 0).bytes, "__name__"), "cache_misses_u");
    decode_pprof(profile_of(&body, 0, 0), &d);
    CHECK_EQ(d.n_types, 2);
    CHECK_STREQ(text_of(&d, d.types[1], 1), "cache_misses_u");
    CHECK_STREQ(text_of(&d, d.types[1], 2), "count");
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 1), 3000);
}

TEST(a_name_that_a_rule_sets_is_made_one_that_engines_take) {
    static const char *const names[][2] = {
        {"mine", "mine"}, {"a-b c:d", "a_b_c_d"}, {"0day", "_0day"}};
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};

    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(label_set_put(&made.list.items[0].labels, "__name__", names[i][0]));
        buffer_clear(&body);
        (void)encode("pyroscope", &made, (EngineInput){}, &body);
        CHECK_STREQ(label_of(get(buffer_bytes(&body), 1, 0).bytes, "__name__"), names[i][1]);
    }
}

TEST(labels_are_bounded_utf_8_and_those_for_rules_stay_here) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    char hostile[LABEL_VALUE_MAX + 1];
    uint32_t c;
    Bytes first;

    memset(hostile, '\xff', LABEL_VALUE_MAX);
    hostile[LABEL_VALUE_MAX] = '\0';
    CHECK_OK(label_set_put(&made.list.items[0].labels, "unit", hostile));
    CHECK_OK(label_set_put(&made.list.items[0].labels, "slice", "a\\x2db"));
    CHECK_OK(label_set_put(&made.list.items[0].labels, "__tmp", "x"));
    CHECK_OK(label_set_put(&made.list.items[0].labels, "__name__", "mine"));
    (void)encode("pyroscope", &made, (EngineInput){}, &body);
    first = get(buffer_bytes(&body), 1, 0).bytes;
    CHECK_EQ(count(first, 1), 6);
    CHECK_STREQ(label_of(first, "__name__"), "mine");
    CHECK_STREQ(label_of(first, "slice"), "a\\x2db");
    CHECK_EQ(strlen(label_of(first, "unit")), 1024);
    for (const char *at = label_of(first, "unit"); *at; at++)
        CHECK_EQ(text_code_point((const uint8_t *)at, 1, &c), 1);
}

TEST(parts_of_a_series_with_many_stacks_have_distinct_times) {
    _cleanup_(made_profile_done) MadeProfile many = make_many(40000);
    _cleanup_(made_series_done) MadeSeries made = make_series_list(&many);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t folded = 0, samples = 0, last = 0;

    (void)make_series(&made, "many", 0, 0, 0);
    CHECK_EQ(encode("pyroscope", &made, (EngineInput){.folded = &folded}, &body), 1);
    CHECK_EQ(count(get(buffer_bytes(&body), 1, 0).bytes, 2), 3);
    for (size_t i = 0; i < 3; i++) {
        Bytes profile = profile_of(&body, 0, i);

        CHECK(count(profile, 2) <= engine_by_name("pyroscope")->max_stacks);
        CHECK(get(profile, 9, 0).value > last);
        CHECK_EQ(get(profile, 10, 0).value, 10000000000);
        last = get(profile, 9, 0).value;
        samples += sum_of(profile, 0);
    }
    CHECK_EQ(samples, many.profile->samples);
    CHECK_EQ(folded, 0);
}

TEST(the_rarest_stacks_beyond_all_parts_become_other_and_are_counted) {
    _cleanup_(made_profile_done) MadeProfile many = make_many(MANY);
    _cleanup_(made_series_done) MadeSeries made = make_series_list(&many);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t folded = 0, samples = 0, period = 0, rarest = MANY - (4 * 16000 - 1);
    Bytes last;

    (void)make_series(&made, "many", 0, 0, 0);
    CHECK_EQ(encode("pyroscope", &made, (EngineInput){.folded = &folded}, &body), 1);
    CHECK_EQ(count(get(buffer_bytes(&body), 1, 0).bytes, 2), 4);
    for (size_t i = 0; i < 4; i++) {
        last = profile_of(&body, 0, i);
        CHECK_EQ(count(last, 2), 16000);
        samples += sum_of(last, 0);
        period += sum_of(last, 1);
    }
    CHECK_EQ(samples, many.profile->samples);
    CHECK_EQ(period, many.profile->samples * PERIOD);
    CHECK_EQ(folded, rarest * (rarest + 1) / 2);
    CHECK(memmem(last.data, last.size, "[other]", 7));
}

/* The n-th label is a series of its own. */
static MadeSeries make_some(MadeProfile *made, uint32_t n) {
    MadeSeries series;
    char name[32];

    (void)make_event(made, "cpu-clock", true);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t file = make_mapping(made, FRAME_USER, "/usr/bin/some"), frame;

        (void)snprintf(name, sizeof(name), "function_%u", i);
        frame = make_frame(made, file, 0x1000 + i, FRAME_NAMED, name, NULL);
        make_label(made)->values[PROFILE_EVENT] = 0;
        make_cell(made, make_stack(made, 1, &frame), i + 1, PERIOD * (i + 1));
    }
    series = make_series_list(made);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "service_%02u", i);
        (void)make_series(&series, name, 0, i, i);
    }
    return series;
}

TEST(requests_together_have_each_series_once_and_none_is_too_large) {
    enum { SERIES = 30, LIMIT = 2000 };
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(made_series_done) MadeSeries series = make_some(&made, SERIES);
    _cleanup_(buffer_done) Buffer body = {};
    size_t next = 0, requests = 0;
    uint64_t samples = 0;

    while (next < SERIES) {
        size_t first = next;

        buffer_clear(&body);
        next =
            encode("pyroscope", &series, (EngineInput){.first = first, .max_bytes = LIMIT}, &body);
        CHECK(next > first && body.size <= LIMIT);
        CHECK_EQ(count(buffer_bytes(&body), 1), next - first);
        for (size_t i = 0; i < next - first; i++)
            samples += sum_of(profile_of(&body, i, 0), 0);
        requests++;
    }
    CHECK(requests > 2 && requests < SERIES);
    CHECK_EQ(samples, made.profile->samples);
}

TEST(a_series_too_large_by_itself_is_folded_until_it_fits) {
    _cleanup_(made_profile_done) MadeProfile many = make_many(1000);
    _cleanup_(made_series_done) MadeSeries made = make_series_list(&many);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t folded = 0;

    (void)make_series(&made, "many", 0, 0, 0);
    CHECK_EQ(
        encode("pyroscope", &made, (EngineInput){.max_bytes = 10000, .folded = &folded}, &body), 1);
    CHECK(body.size <= 10000 && body.size > 7000);
    CHECK(folded > 0 && folded < many.profile->samples * 9 / 10);
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 0), many.profile->samples);
}

TEST(a_share_multiplies_values_and_rounding_is_carried_over) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(made_series_done) MadeSeries series = make_some(&made, 20);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t samples = 0, period = 0, exact = made.profile->samples * 10 / 3;

    (void)encode("pyroscope", &series, (EngineInput){.weight = 10.0 / 3}, &body);
    for (size_t i = 0; i < 20; i++) {
        samples += sum_of(profile_of(&body, i, 0), 0);
        period += sum_of(profile_of(&body, i, 0), 1);
    }
    CHECK(samples + 1 >= exact && samples <= exact);
    CHECK(period + 1 >= exact * PERIOD && period <= exact * PERIOD);
}

TEST(what_rules_drop_is_not_sent) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_series_list(&shop);
    _cleanup_(buffer_done) Buffer body = {};

    (void)make_series(&made, "till", 0, 1, 1);
    CHECK_EQ(encode("pyroscope", &made, (EngineInput){}, &body), 1);
    CHECK_EQ(count(buffer_bytes(&body), 1), 1);
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 0), OTHER_SAMPLES);
    made.list.of_label[1] = SERIES_NONE;
    for (const Engine *engine = engines; engine->name; engine++) {
        buffer_clear(&body);
        CHECK_EQ(encode(engine->name, &made, (EngineInput){}, &body), 1);
        CHECK_EQ(body.size, 0);
    }
}

static void decode_base64(const char *text, Buffer *ret) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    unsigned n = 0;

    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (uint32_t)(strchr(letters, *text) - letters);
        n += 6;
        if (n >= 8)
            text_putc(ret, (char)(bits >> (n -= 8)));
    }
}

TEST(parca_gets_json_with_compressed_profiles) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {}, packed = {}, plain = {};
    const char *name, *value, *raw;
    json_t *json, *series;
    Decoded d = {};

    CHECK_OK(label_set_put(&made.list.items[0].labels, "unit", "a\"b\\c"));
    CHECK_EQ(encode("parca", &made, (EngineInput){}, &body), 2);
    json = json_loadb((const char *)body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
    CHECK(json);
    series = json_object_get(json, "series");
    CHECK_EQ(json_array_size(series), 2);
    CHECK_OK(json_unpack(json_array_get(series, 0), "{s{s[{ssss}{}{}{}{ssss}]}s[{ss}]}", "labels",
                         "labels", "name", &name, "value", &value, "name", &name, "value", &value,
                         "samples", "rawProfile", &raw));
    CHECK_STREQ(name, "unit");
    CHECK_STREQ(value, "a\"b\\c");
    decode_base64(raw, &packed);
    unpack(&packed, &plain);
    decode_pprof(buffer_bytes(&plain), &d);
    CHECK_EQ(d.time, made.interval.since_ns);
    CHECK_EQ(sum_of(buffer_bytes(&plain), 1), WORK_PERIOD);
    json_decref(json);
}

TEST(a_file_has_all_series_with_their_labels_at_the_samples) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    _cleanup_(decoded_done) Decoded d = {};
    Bytes label;

    CHECK_EQ(encode("file", &made, (EngineInput){.max_bytes = 1}, &body), 2);
    unpack(&body, &d.plain);
    decode_pprof(buffer_bytes(&d.plain), &d);
    CHECK_EQ(d.n_samples, 4);
    CHECK_EQ(sum_of(buffer_bytes(&d.plain), 1), WORK_PERIOD + OTHER_PERIOD);
    CHECK_EQ(count(d.samples[0], 3), 5);
    CHECK_EQ(count(d.samples[3], 3), 4);
    label = get(d.samples[3], 3, 3).bytes;
    CHECK_STREQ(text_of(&d, label, 1), "service_name");
    CHECK_STREQ(text_of(&d, label, 2), "till");
}

TEST(the_golden_profile_has_the_sums_that_engines_must_give_back) {
    Interval *golden = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    Decoded d = {};
    uint64_t v[VALUES_MAX];
    const char *names[] = {"main", "rec", "leaf"};
    const uint64_t self[] = {20202020, 80808080, 404040400};

    CHECK_OK(engine_golden(7000000000, 9000000000, &golden));
    _cleanup_(made_profile_done)
        MadeProfile made = {.profile = golden->profile, .names = golden->names};
    _cleanup_(made_series_done) MadeSeries series = make_series_list(&made);
    free(golden);
    (void)make_series(&series, "profd-golden", 0, 0, 0);
    (void)encode("pyroscope", &series, (EngineInput){}, &body);
    decode_pprof(profile_of(&body, 0, 0), &d);
    CHECK_EQ(d.n_samples, 3);
    CHECK_EQ(d.period, 10101010);
    CHECK_EQ(sum_of(profile_of(&body, 0, 0), 1), 505050500);
    for (size_t i = 0; i < 3; i++) {
        CHECK_STREQ(leaf_of(&d, i), names[i]);
        CHECK_EQ(get_packed(d.samples[i], 1, v), i + 1);
        CHECK_EQ(get_packed(d.samples[i], 2, v), 2);
        CHECK_EQ(v[1], self[i]);
    }
}

TEST_MAIN()
