/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config.h"

#include "test.h"
#include "util/file.h"
#include "util/macro.h"

/* What a configuration file may say, and how it is told that it said something else. */

typedef struct Problems {
    unsigned n;
    unsigned line;
    char last[512];
} Problems;

static void note(void *userdata, const char *path _unused_, unsigned line, const char *problem) {
    Problems *p = userdata;

    p->n++;
    p->line = line;
    snprintf(p->last, sizeof(p->last), "%s", problem);
}

/* Loads text as a file over the defaults. */
static int load(const char *text, Config *ret, Problems *ret_problems) {
    char path[] = "/tmp/test-config-XXXXXX";
    _cleanup_close_ int fd = mkstemp(path);
    int r;

    *ret_problems = (Problems){};
    config_set_defaults(ret);
    r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
    if (r == 0)
        r = config_load(ret, path, note, ret_problems);
    (void)unlink(path);
    return r;
}

TEST(every_default_is_what_its_own_parser_takes) {
    Config config = {};

    config_set_defaults(&config);
    CHECK_EQ(config.frequency_hz, (uint64_t)99);
    CHECK_EQ(config.zstd_level, 3);
    CHECK_EQ(config.buffer_bytes, (uint64_t)524288);
    CHECK_EQ(config.flush_interval_ns, (uint64_t)5000000000);
    CHECK(config.call_graph && config.exclude_idle && config.kernel_samples);
}

TEST(keys_are_taken_in_with_comments_around_them) {
    Problems problems;
    Config config;

    CHECK_EQ(load("# comment\n[Profd]\nFlushIntervalSec=500ms ; short\n\n[Session default]\n"
                  "Frequency=999\nCompress=zstd:19\nCallGraph=none\nKernelSamples=no\n",
                  &config, &problems),
             0);
    CHECK_EQ(config.flush_interval_ns, (uint64_t)500000000);
    CHECK_EQ(config.frequency_hz, (uint64_t)999);
    CHECK_EQ(config.zstd_level, 19);
    CHECK(!config.call_graph && !config.kernel_samples);
}

TEST(a_bad_value_leaves_the_default_and_names_its_line) {
    Problems problems;
    Config config;

    CHECK_EQ(load("[Session default]\n\nFrequency=fast\nBufferSize=1M\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 3U);
    CHECK_STREQ(problems.last, "Frequency= takes samples a second from 1 to 100000, not 'fast'");
    CHECK_EQ(config.frequency_hz, (uint64_t)99);
    CHECK_EQ(config.buffer_bytes, (uint64_t)1048576);
}

TEST(bad_values_of_every_key_are_refused) {
    static const struct {
        const char *name, *value;
    } bad[] = {
        {"Frequency", "0"},      {"Frequency", "100001"}, {"Frequency", "-1"},
        {"BufferSize", "100K"},  {"BufferSize", "4K"},    {"BufferSize", "128M"},
        {"Compress", "zstd:23"}, {"Compress", "zstd:0"},  {"Compress", "zstd3"},
        {"Compress", "gzip"},    {"CallGraph", "dwarf"},  {"ExcludeIdle", "2"},
        {"KernelSamples", ""},
    };
    const char *expected;
    Config config;

    config_set_defaults(&config);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        expected = NULL;
        CHECK(config_set(&config, "Session default", bad[i].name, bad[i].value, &expected) < 0);
        CHECK(expected);
    }
    CHECK(config_set(&config, "Profd", "FlushIntervalSec", "0", &expected) < 0);
    CHECK_EQ(config_set(&config, "Profd", "Frequency", "99", &expected), -ENOENT);
}

TEST(unknown_keys_and_lines_that_are_none_are_told) {
    Problems problems;
    Config config;

    CHECK_EQ(load("[Session default]\nFrequenzy=99\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "There is no key 'Frequenzy' in section [Session default]");
    CHECK_EQ(load("[Profd]\nwhat is this\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 2U);
}

TEST(a_line_too_long_is_refused_as_a_whole) {
    char text[600] = "[Session default]\nFrequency=999";
    Problems problems;
    Config config;

    memset(text + strlen(text), ' ', 300);
    strcat(text, "\nCallGraph=none\n");
    CHECK_EQ(load(text, &config, &problems), 1);
    CHECK_EQ(problems.line, 2U);
    CHECK_EQ(config.frequency_hz, (uint64_t)99);
    CHECK(!config.call_graph);
}

TEST(a_missing_file_is_an_error_and_changes_nothing) {
    Config config;

    config_set_defaults(&config);
    CHECK_EQ(config_load(&config, "/nonexistent/profd.conf", NULL, NULL), -ENOENT);
    CHECK_EQ(config.frequency_hz, (uint64_t)99);
}

TEST_MAIN()
