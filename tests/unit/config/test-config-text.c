/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config-number.h"
#include "config/config-text.h"
#include "test.h"

/* The generic part of a configuration, with the table of a program that is not profd. */

typedef struct Gateway {
    bool enabled;
    uint32_t connections;
    uint64_t bytes, idle_ns, rate;
} Gateway;

#define OF(field) offsetof(Gateway, field), sizeof(((Gateway *)NULL)->field)

/* clang-format off */
static const ConfigKey keys[] = {
    { "Gateway", "Enabled",     "yes",      "yes or no",  config_parse_bool,         0,    1,          OF(enabled),     false, 1 },
    { "Gateway", "Connections", "16",       "a number",   config_parse_count,        1,    64,         OF(connections), false, 2 },
    { "Gateway", "Buffer",      "64K",      "a size",     config_parse_power_of_two, 4096, 1ULL << 30, OF(bytes),       false, 2 },
    { "Gateway", "IdleSec",     "45s",      "a span",     config_parse_span,         1,    UINT64_MAX, OF(idle_ns),     false, 4 },
    { "Gateway", "Rate",        "infinity", "a limit",    config_parse_size_limit,   1024, 1ULL << 40, OF(rate),        false, 4 },
};
/* clang-format on */

static const ConfigTable table = {.keys = keys, .n = sizeof(keys) / sizeof(keys[0])};

typedef struct Seen {
    char text[512];
    size_t n;
    int result; /* of on_section() */
} Seen;

static void see(Seen *seen, const char *text, unsigned line) {
    seen->n +=
        (size_t)snprintf(seen->text + seen->n, sizeof(seen->text) - seen->n, "%u:%s;", line, text);
    assert(seen->n < sizeof(seen->text));
}

static int on_section(void *userdata, const ConfigPlace *place, const char *section) {
    Seen *seen = userdata;

    see(seen, section ? section : "?", place->line);
    return seen->result;
}

static void on_key(void *userdata, const ConfigPlace *place, const char *name, const char *value) {
    char text[256];

    snprintf(text, sizeof(text), "%s=%s", name, value);
    see(userdata, text, place->line);
}

static void on_refused(void *userdata, const ConfigPlace *place) {
    see(userdata, "refused", place->line);
}

static void on_problem(void *userdata, const char *path, unsigned line, const char *problem) {
    CHECK_STREQ(path, "gateway.conf");
    see(userdata, problem[0] == 'T' ? "problem" : "", line);
}

static int read_text(Seen *seen, const char *text) {
    ConfigFile file = {.path = (char *)"gateway.conf", .text = (char *)text, .size = strlen(text)};
    ConfigFiles files = {.on_problem = on_problem, .userdata = seen};
    ConfigReader reader = {
        .on_section = on_section, .on_key = on_key, .on_refused = on_refused, .userdata = seen};

    return config_text_read(&files, &file, &reader);
}

TEST(headings_and_keys_are_passed_with_their_line_numbers) {
    Seen seen = {};

    CHECK_OK(
        read_text(&seen, "# a comment\n[Gateway]\n  Rate=1M ; or so\n\n[Other\nA=b\nnonsense\n"));
    CHECK_STREQ(seen.text, "2:Gateway;3:Rate=1M;5:?;6:A=b;7:problem;7:refused;");
}

TEST(an_error_of_the_callback_ends_the_reading) {
    Seen seen = {.result = -ENOMEM};

    CHECK_EQ(read_text(&seen, "[Gateway]\nRate=1M\n[Other]\n"), -ENOMEM);
    CHECK(strstr(seen.text, "Other") == NULL);
}

TEST(defaults_come_from_the_table) {
    Gateway gateway = {};

    config_table_defaults(table, "Gateway", &gateway);
    CHECK(gateway.enabled);
    CHECK_EQ(gateway.connections, 16);
    CHECK_EQ(gateway.bytes, 65536);
    CHECK_EQ(gateway.idle_ns, 45000000000);
    CHECK_EQ(gateway.rate, 0);
}

TEST(a_key_is_found_only_in_its_section) {
    CHECK(config_table_find(table, "Gateway", "Rate") == &keys[4]);
    CHECK(config_table_find(table, "Other", "Rate") == NULL);
    CHECK_STREQ(config_table_near(table, "Gateway", "Connection"), "Connections");
    CHECK(config_table_near(table, "Other", "Connection") == NULL);
}

TEST(a_bad_value_leaves_the_old_value) {
    static const struct {
        unsigned key;
        const char *value;
        int r;
    } cases[] = {{1, "65", -ERANGE},   {1, "0", -ERANGE},    {1, "many", -EINVAL},
                 {2, "5000", -EINVAL}, {2, "2048", -ERANGE}, {4, "1", -ERANGE}};
    Gateway gateway, same;

    memset(&gateway, 0, sizeof(gateway));
    config_table_defaults(table, "Gateway", &gateway);
    same = gateway;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const ConfigKey *key = &keys[cases[i].key];

        CHECK_EQ(key->parse(key, cases[i].value, &gateway), cases[i].r);
        CHECK_EQ(memcmp(&gateway, &same, sizeof(same)), 0);
    }
}

TEST(printed_values_read_back_the_same) {
    for (size_t i = 0; i < table.n; i++) {
        Gateway gateway = {};
        Buffer out = {};

        config_table_defaults(table, "Gateway", &gateway);
        CHECK(config_print_number(&keys[i], &gateway, &out));
        buffer_append(&out, "", 1);
        CHECK_STREQ((const char *)out.data, keys[i].fallback);
        buffer_done(&out);
    }
}

TEST_MAIN()
