/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "decode-protobuf.h"
#include "engine/engine.h"
#include "export/make-shop.h"
#include "make-series.h"
#include "test.h"
#include "util/text.h"

/* Requests of OTLP, decoded by hand and looked up through the tables of their dictionary. */

enum { MAPPING = 1, LOCATION = 2, FUNCTION = 3, LINK = 4, STRING = 5, ATTRIBUTE = 6, STACK = 7 };

static Bytes dictionary_of(const Buffer *body) {
    return get(buffer_bytes(body), 2, 0).bytes;
}

static Bytes entry(const Buffer *body, uint32_t table, uint64_t number) {
    return get(dictionary_of(body), table, number).bytes;
}

static bool is(Bytes text, const char *want) {
    if (!bytes_equal_str(text, want))
        printf("# '%.*s', not '%s'\n", (int)text.size, text.data, want);
    return bytes_equal_str(text, want);
}

/* Whether a field that is a number of a string is this one. */
static bool names(const Buffer *body, Bytes message, uint32_t field, const char *want) {
    return is(entry(body, STRING, get(message, field, 0).value), want);
}

static Bytes resource(const Buffer *body, size_t n) {
    return get(buffer_bytes(body), 1, n).bytes;
}

/* The n-th profile of the n-th scope of a resource. */
static Bytes profile(const Buffer *body, size_t n, size_t scope, size_t number) {
    return get(get(resource(body, n), 2, scope).bytes, 2, number).bytes;
}

static Bytes attribute(Bytes of, const char *key) {
    for (size_t i = 0; i < count(of, 1); i++) {
        Bytes pair = get(of, 1, i).bytes;

        if (bytes_equal_str(get(pair, 1, 0).bytes, key))
            return get(get(pair, 2, 0).bytes, 1, 0).bytes;
    }
    return (Bytes){};
}

static uint64_t sum_of(Bytes of) {
    Cursor c = cursor_of(of.data, of.size, false);
    uint64_t sum = 0, v[VALUES_MAX];
    Field field;

    while (take_field(&c, &field))
        if (field.number == 2 && get_packed(field.bytes, 4, v) == 1)
            sum += v[0];
    return sum;
}

/* The n-th function of a sample's stack, the innermost first, without inlined ones. */
static Bytes function_of(const Buffer *body, Bytes sample, size_t n) {
    uint64_t v[VALUES_MAX] = {};
    Bytes location, line;

    (void)get_packed(entry(body, STACK, get(sample, 1, 0).value), 1, v);
    location = entry(body, LOCATION, v[n]);
    line = get(location, 3, count(location, 3) - 1).bytes;
    return entry(body, STRING, get(entry(body, FUNCTION, get(line, 1, 0).value), 1, 0).value);
}

static MadeSeries make_shop_series(const MadeProfile *shop) {
    MadeSeries made = make_series_list(shop);

    made_ok(label_set_put(&make_series(&made, "shop", 0, 0, 0)->labels, "comm", "shop"));
    (void)make_series(&made, "till", 0, 1, 1);
    return made;
}

TEST(entry_0_of_each_table_is_its_zero_value) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    static const uint8_t zeros[16];

    CHECK_EQ(encode("otlp", &made, (EngineInput){}, &body), 2);
    for (uint32_t table = MAPPING; table <= STACK; table++) {
        CHECK(count(dictionary_of(&body), table) > (table != LINK));
        CHECK_EQ(entry(&body, table, 0).size, table == LINK ? 28 : 0);
    }
    CHECK_EQ(memcmp(get(entry(&body, LINK, 0), 1, 0).bytes.data, zeros, 16), 0);
}

TEST(a_resource_is_a_service_of_a_host_with_the_names_of_opentelemetry) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Bytes of;

    CHECK_OK(label_set_put(&made.list.items[0].labels, "container", "c0ffee"));
    CHECK_OK(label_set_put(&made.list.items[0].labels, "team", "w\xff"));
    (void)encode("otlp", &made, (EngineInput){}, &body);
    CHECK_EQ(count(buffer_bytes(&body), 1), 2);
    CHECK_EQ(count(buffer_bytes(&body), 2), 1);
    of = get(resource(&body, 0), 1, 0).bytes;
    CHECK_EQ(count(of, 1), 4);
    CHECK(is(attribute(of, "service.name"), "shop"));
    CHECK(is(attribute(of, "host.name"), "web1"));
    CHECK(is(attribute(of, "container.id"), "c0ffee"));
    CHECK(is(attribute(of, "team"), "w\\xff"));
    CHECK(is(attribute(get(resource(&body, 1), 1, 0).bytes, "service.name"), "till"));
}

TEST(a_profile_of_time_counts_samples_and_has_the_period_in_nanoseconds) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Bytes of;

    (void)encode("otlp", &made, (EngineInput){}, &body);
    of = profile(&body, 0, 0, 0);
    CHECK(is(get(get(get(resource(&body, 0), 2, 0).bytes, 1, 0).bytes, 1, 0).bytes, "process_cpu"));
    CHECK(names(&body, get(of, 1, 0).bytes, 1, "samples"));
    CHECK(names(&body, get(of, 1, 0).bytes, 2, "count"));
    CHECK(names(&body, get(of, 5, 0).bytes, 1, "cpu"));
    CHECK(names(&body, get(of, 5, 0).bytes, 2, "nanoseconds"));
    CHECK_EQ(get(of, 6, 0).value, 10000000);
    CHECK_EQ(get(of, 3, 0).value, made.interval.since_ns);
    CHECK_EQ(get(of, 4, 0).value, 10000000000);
    CHECK_EQ(sum_of(of), WORK_SAMPLES);
    CHECK_EQ(sum_of(profile(&body, 1, 0, 0)), OTHER_SAMPLES);
}

TEST(other_events_have_sums_of_their_periods_and_a_scope_of_their_name) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(buffer_done) Buffer body = {};
    Bytes of;

    (void)make_event(&made, "cpu-clock", true);
    (void)make_event(&made, "cache-misses", false);
    for (uint32_t event = 0; event < 2; event++) {
        make_label(&made)->values[PROFILE_EVENT] = event;
        make_cell(&made, STACK_ROOT, 3, 3000);
    }
    _cleanup_(made_series_done) MadeSeries series = make_series_list(&made);
    (void)make_series(&series, "shop", 0, 0, 0);
    (void)make_series(&series, "shop", 1, 1, 1);
    CHECK_OK(label_set_put(&series.list.items[0].labels, "event", "cpu-clock"));
    CHECK_OK(label_set_put(&series.list.items[1].labels, "event", "cache-misses"));
    (void)encode("otlp", &series, (EngineInput){}, &body);
    CHECK_EQ(count(buffer_bytes(&body), 1), 1);
    CHECK_EQ(count(resource(&body, 0), 2), 2);
    CHECK(
        is(get(get(get(resource(&body, 0), 2, 0).bytes, 1, 0).bytes, 1, 0).bytes, "cache_misses"));
    of = profile(&body, 0, 0, 0);
    CHECK(names(&body, get(of, 1, 0).bytes, 1, "cache_misses"));
    CHECK(names(&body, get(of, 5, 0).bytes, 2, "count"));
    CHECK_EQ(sum_of(of), 3000);
    CHECK_EQ(sum_of(profile(&body, 0, 1, 0)), 3);
}

TEST(stacks_are_looked_up_leaf_first_and_no_index_is_out_of_its_table) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Bytes sample, dictionary;
    uint64_t v[VALUES_MAX];

    (void)encode("otlp", &made, (EngineInput){}, &body);
    dictionary = dictionary_of(&body);
    sample = get(profile(&body, 0, 0, 0), 2, 0).bytes;
    CHECK(is(function_of(&body, sample, 0), "work<[u8; 4]>"));
    CHECK(is(function_of(&body, sample, 1), "main"));
    sample = get(profile(&body, 1, 0, 0), 2, 0).bytes;
    CHECK(is(function_of(&body, sample, 0), "read"));
    CHECK(is(function_of(&body, sample, 1), "shop+0x3000"));
    for (size_t i = 0; i < count(dictionary, STACK); i++)
        for (size_t k = 0, n = get_packed(entry(&body, STACK, i), 1, v); k < n; k++)
            CHECK(v[k] > 0 && v[k] < count(dictionary, LOCATION));
    for (size_t i = 1; i < count(dictionary, LOCATION); i++) {
        Bytes location = entry(&body, LOCATION, i);

        CHECK(get(location, 1, 0).value > 0);
        CHECK(get(location, 1, 0).value < count(dictionary, MAPPING));
        for (size_t k = 0; k < count(location, 3); k++) {
            uint64_t function = get(get(location, 3, k).bytes, 1, 0).value;

            CHECK(function > 0 && function < count(dictionary, FUNCTION));
        }
    }
}

/* An entry of the table of attributes has this key and text, or this number. */
static bool is_attribute(const Buffer *body, uint64_t number, const char *key, const char *text,
                         uint64_t value) {
    Bytes of = entry(body, ATTRIBUTE, number), content = get(of, 2, 0).bytes;

    return number > 0 && names(body, of, 1, key) &&
           (text ? is(get(content, 1, 0).bytes, text)
                 : count(content, 3) == 1 && get(content, 3, 0).value == value);
}

TEST(samples_mappings_and_locations_have_attributes) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t v[VALUES_MAX];
    Bytes sample;

    shop.profile->labels[1].values[PROFILE_PID] = 0;
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    (void)encode("otlp", &made, (EngineInput){}, &body);
    sample = get(profile(&body, 0, 0, 0), 2, 0).bytes;
    CHECK_EQ(get_packed(sample, 2, v), 2);
    CHECK(is_attribute(&body, v[0], "thread.name", "shop", 0));
    CHECK(is_attribute(&body, v[1], "process.pid", NULL, 10));
    sample = get(profile(&body, 1, 0, 0), 2, 0).bytes;
    CHECK_EQ(get_packed(sample, 2, v), 1);
    CHECK(is_attribute(&body, v[0], "process.pid", NULL, 0));
    CHECK(names(&body, entry(&body, MAPPING, 1), 4, "/usr/bin/shop"));
    CHECK_EQ(get_packed(entry(&body, MAPPING, 1), 5, v), 1);
    CHECK(is_attribute(&body, v[0], "process.executable.build_id.gnu",
                       "00ababababababababababababababababababab", 0));
    CHECK_EQ(get_packed(entry(&body, LOCATION, 1), 4, v), 1);
    CHECK(is_attribute(&body, v[0], "profile.frame.type", "native", 0));
}

TEST(no_entry_is_twice_in_its_table_and_strings_are_utf_8) {
    _cleanup_(made_profile_done) MadeProfile shop = make_shop();
    _cleanup_(made_series_done) MadeSeries made = make_shop_series(&shop);
    _cleanup_(buffer_done) Buffer body = {};
    Bytes dictionary;
    uint32_t c;

    (void)encode("otlp", &made, (EngineInput){}, &body);
    dictionary = dictionary_of(&body);
    for (uint32_t table = MAPPING; table <= STACK; table++)
        for (size_t i = 0; i < count(dictionary, table); i++)
            for (size_t k = 0; k < i; k++)
                CHECK(!bytes_equal(entry(&body, table, i), entry(&body, table, k)));
    for (size_t i = 0; i < count(dictionary, STRING); i++) {
        Bytes text = entry(&body, STRING, i);

        for (size_t at = 0, n; at < text.size; at += n) {
            n = text_code_point(text.data + at, text.size - at, &c);
            CHECK(n > 0);
        }
    }
}

static MadeSeries make_some(MadeProfile *made, uint32_t n, bool together) {
    MadeSeries series;
    char name[32];

    (void)make_event(made, "cpu-clock", true);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t file = make_mapping(made, FRAME_USER, "/usr/bin/some"), frame;

        (void)snprintf(name, sizeof(name), "function_%u", i);
        frame = make_frame(made, file, 0x1000 + i, FRAME_NAMED, name, NULL);
        if (i == 0 || !together)
            make_label(made)->values[PROFILE_EVENT] = 0;
        make_cell(made, make_stack(made, 1, &frame), i + 1, 10 * (i + 1));
    }
    series = make_series_list(made);
    for (uint32_t i = 0; i < (together ? 1 : n); i++) {
        (void)snprintf(name, sizeof(name), "service_%02u", i);
        (void)make_series(&series, name, 0, i, i);
    }
    return series;
}

TEST(requests_together_have_each_series_once_and_none_is_too_large) {
    enum { SERIES = 30, LIMIT = 4000 };
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(made_series_done) MadeSeries series = make_some(&made, SERIES, false);
    _cleanup_(buffer_done) Buffer body = {};
    size_t next = 0, requests = 0;
    uint64_t samples = 0;

    while (next < SERIES) {
        size_t first = next;

        buffer_clear(&body);
        next = encode("otlp", &series, (EngineInput){.first = first, .max_bytes = LIMIT}, &body);
        CHECK(next > first && body.size <= LIMIT);
        CHECK_EQ(count(buffer_bytes(&body), 1), next - first);
        CHECK_EQ(count(dictionary_of(&body), FUNCTION), next - first + 1);
        for (size_t i = 0; i < next - first; i++)
            samples += sum_of(profile(&body, i, 0, 0));
        requests++;
    }
    CHECK(requests > 2 && requests < SERIES);
    CHECK_EQ(samples, made.profile->samples);
}

TEST(a_series_too_large_by_itself_is_folded_until_it_fits) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(made_series_done) MadeSeries series = make_some(&made, 1000, true);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t folded = 0, v[VALUES_MAX];
    Bytes of, last;

    CHECK_OK(label_set_put(&series.list.items[0].labels, "comm", "shop"));
    CHECK_EQ(encode("otlp", &series, (EngineInput){.max_bytes = 20000, .folded = &folded}, &body),
             1);
    CHECK(body.size <= 20000 && body.size > 12000);
    CHECK(folded > 0 && folded < made.profile->samples * 9 / 10);
    of = profile(&body, 0, 0, 0);
    CHECK_EQ(sum_of(of), made.profile->samples);
    last = get(of, 2, count(of, 2) - 1).bytes;
    CHECK(is(function_of(&body, last, 0), "[other]"));
    CHECK_EQ(get_packed(last, 2, v), 1);
    CHECK(is_attribute(&body, v[0], "thread.name", "shop", 0));
}

TEST(a_share_multiplies_values_and_rounding_is_carried_over) {
    _cleanup_(made_profile_done) MadeProfile made = make_profile(INTERVAL_KEYS);
    _cleanup_(made_series_done) MadeSeries series = make_some(&made, 20, false);
    _cleanup_(buffer_done) Buffer body = {};
    uint64_t samples = 0, exact = made.profile->samples * 10 / 3;

    (void)encode("otlp", &series, (EngineInput){.weight = 10.0 / 3}, &body);
    for (size_t i = 0; i < 20; i++)
        samples += sum_of(profile(&body, i, 0, 0));
    CHECK(samples + 1 >= exact && samples <= exact);
}

TEST_MAIN()
