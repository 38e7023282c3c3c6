/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config.h"

#include "test.h"
#include "util/file.h"
#include "util/macro.h"

/* The words that a configuration file may hold, and the problems reported for all others. */

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

/* Loads text as a file. */
static int load(const char *text, Config **ret, Problems *ret_problems) {
    char path[] = "/tmp/test-config-XXXXXX";
    _cleanup_close_ int fd = mkstemp(path);
    int r;

    *ret_problems = (Problems){};
    *ret = config_free(*ret);
    r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
    if (r == 0)
        r = config_load(path, note, ret_problems, ret);
    (void)unlink(path);
    return r;
}

TEST(every_default_is_accepted_by_its_own_parser) {
    _cleanup_(config_freep) Config *config = NULL;
    const SessionConfig *session;

    CHECK_OK(config_new(&config));
    session = config_session(config, "default");
    CHECK(session);
    CHECK_EQ(config->flush_interval_ns, (uint64_t)5000000000);
    CHECK_EQ(config->sync_interval_ns, (uint64_t)300000000000);
    CHECK_EQ(config->max_use_bytes, CONFIG_BUILT_IN);
    CHECK_EQ(config->keep_free_bytes, CONFIG_BUILT_IN);
    CHECK_EQ(config->min_use_bytes, (uint64_t)256 << 20);
    CHECK_EQ(config->max_frequency_hz, (uint64_t)0);
    CHECK_EQ(config->max_sessions, 16U);
    CHECK_EQ(config->n_sessions, 1U);
    CHECK_STREQ(session->events, "auto");
    CHECK_EQ(session->frequency_hz, (uint64_t)99);
    CHECK_EQ(session->period, (uint64_t)0);
    CHECK_EQ(session->zstd_level, 3);
    CHECK_EQ(session->buffer_bytes, (uint64_t)524288);
    CHECK_EQ(session->rotate_interval_ns, (uint64_t)600000000000);
    CHECK_EQ(session->call_graph, CALL_GRAPH_AUTO);
    CHECK(session->enabled && session->exclude_idle && session->kernel_samples);
    CHECK(session->user_samples && !session->namespaces);
    CHECK(!config_session(config, "other"));
}

TEST(keys_are_read_with_comments_around_them) {
    _cleanup_(config_freep) Config *config = NULL;
    const SessionConfig *session;
    Problems problems;

    CHECK_EQ(load("# comment\n[Profd]\nFlushIntervalSec=500ms ; short\n\n[Session default]\n"
                  "Frequency=999\nCompress=zstd:19\nCallGraph=none\nKernelSamples=no\n",
                  &config, &problems),
             0);
    CHECK_EQ(config->flush_interval_ns, (uint64_t)500000000);
    session = config_session(config, "default");
    CHECK_EQ(session->frequency_hz, (uint64_t)999);
    CHECK_EQ(session->zstd_level, 19);
    CHECK(session->call_graph == CALL_GRAPH_NONE && !session->kernel_samples);
}

TEST(a_bad_value_leaves_the_default_and_names_its_line) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\n\nFrequency=fast\nBufferSize=1M\n", &config, &problems), 1);
    CHECK_EQ(config->problems, 1U);
    CHECK_EQ(problems.line, 3U);
    CHECK_STREQ(
        problems.last,
        "Frequency=fast is not understood: it takes samples a second from 1 to 100000, or max");
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)99);
    CHECK_EQ(config->sessions[0].buffer_bytes, (uint64_t)1048576);
}

TEST(unknown_keys_and_invalid_lines_are_reported) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nFrequenzy=99\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "There is no key Frequenzy= in [Session]: did you mean Frequency=?");
    CHECK_EQ(load("[Profd]\nFrequency=99\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "Frequency= is no key of [Profd]: it belongs in [Session NAME]");
    CHECK_EQ(load("[Profd]\nwhat is this\nand this\n", &config, &problems), 2);
    CHECK_EQ(problems.line, 3U);
}

TEST(a_line_that_is_too_long_is_refused_completely) {
    _cleanup_(config_freep) Config *config = NULL;
    char text[600] = "[Session default]\nFrequency=999";
    Problems problems;

    memset(text + strlen(text), ' ', 300);
    strcat(text, "\nCallGraph=none\n");
    CHECK_EQ(load(text, &config, &problems), 1);
    CHECK_EQ(problems.line, 2U);
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)99);
    CHECK_EQ(config->sessions[0].call_graph, CALL_GRAPH_NONE);
}

TEST(a_missing_file_is_an_error_and_changes_nothing) {
    Config *config = NULL;

    CHECK_EQ(config_load("/nonexistent/profd.conf", NULL, NULL, &config), -ENOENT);
    CHECK(!config);
}

TEST(sessions_have_sections_of_their_own) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session locks]\nEvent=lock:contention_begin\n[Session default]\n"
                  "Frequency=7\n[Session  locks ] ; again\nPeriod=5\n[Session empty]\n",
                  &config, &problems),
             1);
    CHECK_EQ(problems.line, 5U);
    CHECK_EQ(load("[Session locks]\nEvent=lock:contention_begin\n[Session default]\n"
                  "Frequency=7\n[Session locks] ; again\nPeriod=5\n[Session empty]\n",
                  &config, &problems),
             0);
    CHECK_EQ(config->n_sessions, 3U);
    CHECK_STREQ(config->sessions[0].name, "default");
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)7);
    CHECK_STREQ(config_session(config, "locks")->events, "lock:contention_begin");
    CHECK_EQ(config_session(config, "locks")->period, (uint64_t)5);
    CHECK_EQ(config_session(config, "locks")->frequency_hz, (uint64_t)99);
    CHECK(config_session(config, "empty")->enabled);
}

TEST(long_names_with_the_same_beginning_are_two_sessions) {
    _cleanup_(config_freep) Config *config = NULL;
    char text[512], name[CONFIG_NAME_MAX];
    Problems problems;

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(text, sizeof(text), "[Session %s]\nFrequency=1\n[Session %.62sm]\nFrequency=2\n", name,
             name);
    CHECK_EQ(load(text, &config, &problems), 0);
    CHECK_EQ(config->n_sessions, 3U);
    CHECK_EQ(config_session(config, name)->frequency_hz, (uint64_t)1);
    snprintf(text, sizeof(text), "[Session %sn]\nFrequency=1\n", name);
    CHECK_EQ(load(text, &config, &problems), 1);
}

TEST(an_unknown_section_is_reported_once_and_its_keys_are_ignored) {
    static const char *const headings[] = {"[Sessions default]",
                                           "[Session]",
                                           "[Session a/b]",
                                           "[Session default",
                                           "[profd]",
                                           "[Session .hidden]",
                                           "[]",
                                           "[Session default] Frequency",
                                           "[Session default]x",
                                           "[Session a b]",
                                           "[Sessiondefault]"};

    for (size_t i = 0; i < ARRAY_SIZE(headings); i++) {
        _cleanup_(config_freep) Config *config = NULL;
        char text[256];
        Problems problems;

        snprintf(text, sizeof(text), "[Session default]\nCallGraph=none\n%s\nFrequency=7\nX=1\n",
                 headings[i]);
        CHECK_EQ(load(text, &config, &problems), 1);
        CHECK_EQ(problems.line, 3U);
        CHECK_EQ(config->n_sessions, 1U);
        CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)99);
        CHECK_EQ(config->sessions[0].call_graph, CALL_GRAPH_NONE);
    }
}

TEST(the_number_of_sessions_is_limited) {
    _cleanup_(config_freep) Config *config = NULL;
    char text[8192] = "[Profd]\nMaxSessions=64\n";
    Problems problems;

    for (unsigned i = 1; i < CONFIG_SESSIONS_MAX; i++)
        sprintf(text + strlen(text), "[Session s%u]\nPeriod=5\n", i);
    CHECK_EQ(load(text, &config, &problems), 0);
    CHECK_EQ(config->n_sessions, (uint32_t)CONFIG_SESSIONS_MAX);
    strcat(text, "[Session more]\nPeriod=5\nPeriod=6\n");
    CHECK_EQ(load(text, &config, &problems), 1);
    CHECK_EQ(config->n_sessions, (uint32_t)CONFIG_SESSIONS_MAX);
}

TEST(events_are_appended_and_an_empty_value_clears_them) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nEvent=a:b\nEvent={x,y}:S\n", &config, &problems), 0);
    CHECK_STREQ(config->sessions[0].events, "a:b,{x,y}:S");
    CHECK_EQ(load("[Session default]\nEvent=a\nEvent=\nEvent=c\n", &config, &problems), 0);
    CHECK_STREQ(config->sessions[0].events, "c");
    CHECK_EQ(load("[Session default]\nEvent=a\nEvent=\n", &config, &problems), 0);
    CHECK_STREQ(config->sessions[0].events, "auto");
    CHECK_EQ(load("[Session default]\nEvent=a\nEvent=b,\nEvent=c\n", &config, &problems), 1);
    CHECK_STREQ(config->sessions[0].events, "a,c");
}

TEST(events_that_are_too_long_together_are_refused) {
    _cleanup_(config_freep) Config *config = NULL;
    char text[2048] = "[Session default]\n";
    Problems problems;

    for (unsigned i = 0; i < 12; i++)
        sprintf(text + strlen(text), "Event=%0100u\n", i);
    CHECK_EQ(load(text, &config, &problems), 2);
    CHECK_EQ(problems.line, 13U);
    CHECK_EQ(strlen(config->sessions[0].events), (size_t)1009);
}

TEST(an_empty_value_restores_the_default) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nFrequency=7\nCgroup=a\nPid=\nFrequency=\nCgroup=\n"
                  "[Profd]\nMaxUse=1G\nMaxUse=\n",
                  &config, &problems),
             0);
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)99);
    CHECK_STREQ(config->sessions[0].cgroup, "");
    CHECK_EQ(config->max_use_bytes, CONFIG_BUILT_IN);
}

TEST(indented_lines_do_not_continue_the_previous_one) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(
        load("\xef\xbb\xbf  [Session default]\r\n\t Frequency = 7 \r\n   Period=8\r\n\r\n  ; x\r\n",
             &config, &problems),
        0);
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)7);
    CHECK_EQ(config->sessions[0].period, (uint64_t)8);
}

TEST(keys_before_any_section_are_reported) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("Frequency=7\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "Frequency= stands before any section: put [Profd] or "
                               "[Session NAME] above it");
}

TEST(similar_names_are_suggested_and_others_are_not) {
    static const struct {
        const char *wrong, *right;
    } names[] = {
        {"Frequenzy", "Frequency"},
        {"frequency", "Frequency"},
        {"CPUS", "CPUs"},
        {"Events", "Event"},
        {"Buffersize", "BufferSize"},
        {"RotateInterval", NULL},
        {"RotateIntervallSec", "RotateIntervalSec"},
        {"Pidd", "Pid"},
        {"X", NULL},
        {"Colour", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_(config_freep) Config *config = NULL;
        char text[128], hint[64];
        Problems problems;

        snprintf(text, sizeof(text), "[Session default]\n%s=1\n", names[i].wrong);
        CHECK_EQ(load(text, &config, &problems), 1);
        snprintf(hint, sizeof(hint), "did you mean %s=?", names[i].right ? names[i].right : "");
        CHECK_EQ(strstr(problems.last, hint) != NULL, names[i].right != NULL);
        CHECK_EQ(strstr(problems.last, "profd.conf(5) lists") != NULL, names[i].right == NULL);
    }
}

TEST(lines_that_are_not_text_are_reported_one_by_one) {
    static const char text[] = "[Session default]\nFrequency=7\0\nPeriod=\xff\xfe\n\x01\x02\n"
                               "=5\nCgroup=\x1b[2J\n:::\nPeriod=6";
    _cleanup_(config_freep) Config *config = NULL;
    _cleanup_close_ int fd = -1;
    char path[] = "/tmp/test-config-XXXXXX";
    Problems problems = {};

    fd = mkstemp(path);
    CHECK_OK(file_write_all(fd, text, sizeof(text) - 1));
    CHECK_EQ(config_load(path, note, &problems, &config), 6);
    (void)unlink(path);
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)99);
    CHECK_EQ(config->sessions[0].period, (uint64_t)6);
    CHECK_STREQ(config->sessions[0].cgroup, "");
}

TEST(a_line_of_the_maximum_length_is_accepted_and_a_longer_one_is_not) {
    _cleanup_(config_freep) Config *config = NULL;
    char text[400] = "[Session default]\nEvent=";
    Problems problems;

    memset(text + strlen(text), 'e', 192);
    CHECK_EQ(load(text, &config, &problems), 0);
    CHECK_EQ(strlen(config->sessions[0].events), (size_t)192);
    strcat(text, "\n");
    CHECK_EQ(load(text, &config, &problems), 0);
    strcpy(text + strlen(text) - 1, "e\nFrequency=7\n");
    CHECK_EQ(load(text, &config, &problems), 1);
    CHECK_STREQ(config->sessions[0].events, "auto");
    CHECK_EQ(config->sessions[0].frequency_hz, (uint64_t)7);
}

/* Keys that do not go together: the line that is told, and the session afterwards. */

TEST(a_buffer_is_at_most_as_large_as_the_total) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nBufferSize=1M\n[Profd]\nMaxBufferTotal=300K\n", &config,
                  &problems),
             1);
    CHECK_EQ(problems.line, 2U);
    CHECK_EQ(config->sessions[0].buffer_bytes, (uint64_t)256 << 10);
    CHECK_EQ(load("[Profd]\nMaxBufferTotal=300K\n", &config, &problems), 0);
    CHECK_EQ(config->sessions[0].buffer_bytes, (uint64_t)256 << 10);
}

TEST(a_frequency_is_at_most_the_configured_maximum) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Profd]\nMaxFrequency=50\n[Session a]\nFrequency=51\n[Session b]\n", &config,
                  &problems),
             1);
    CHECK_EQ(problems.line, 4U);
    CHECK_EQ(config_session(config, "a")->frequency_hz, (uint64_t)50);
    CHECK_EQ(config_session(config, "b")->frequency_hz, (uint64_t)50);
}

TEST(a_session_may_not_have_both_a_group_and_processes) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nPid=5 6\nCgroup=a\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 2U);
    CHECK_EQ(config->sessions[0].n_pids, 0U);
    CHECK_EQ(config->sessions[0].pids[1], 0U);
    CHECK_STREQ(config->sessions[0].cgroup, "a");
}

TEST(a_session_may_not_exclude_everything) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session default]\nUserSamples=no\nKernelSamples=no\n", &config, &problems), 1);
    CHECK(config->sessions[0].user_samples && config->sessions[0].kernel_samples);
    CHECK_EQ(load("[Session default]\nUserSamples=no\n", &config, &problems), 0);
}

TEST(a_segment_is_at_most_half_of_the_budget) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Profd]\nMaxUse=8M\n[Session a]\nMaxSegmentSize=5M\n[Session b]\nMaxUse=2M\n"
                  "[Session c]\nMaxSegmentSize=4M\n",
                  &config, &problems),
             1);
    CHECK_EQ(problems.line, 4U);
    CHECK_EQ(config_session(config, "a")->max_segment_bytes, (uint64_t)4 << 20);
    CHECK_EQ(config_session(config, "b")->max_segment_bytes, (uint64_t)1 << 20);
    CHECK_EQ(config_session(config, "c")->max_segment_bytes, (uint64_t)4 << 20);
    CHECK_EQ(load("[Profd]\nMaxUse=1%\n[Session default]\nMaxSegmentSize=infinity\n", &config,
                  &problems),
             0);
    CHECK_EQ(config->sessions[0].max_segment_bytes, (uint64_t)0);
    CHECK_EQ(load("[Profd]\nMaxUse=8M\nStorage=volatile\n", &config, &problems), 0);
    CHECK_EQ(config->sessions[0].max_segment_bytes, (uint64_t)32 << 20);
}

TEST(each_key_has_the_place_where_it_was_last_set) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Profd]\nMaxUse=8M\n[Session a]\nFrequency=5\nFrequency=6\nEvent=cycles\n"
                  "Event=\n",
                  &config, &problems),
             0);
    CHECK_EQ(config_origin(config, config_key("Profd", "MaxUse"), NULL).line, 2U);
    CHECK(strstr(config_origin(config, config_key("Profd", "MaxUse"), NULL).path, "/tmp/test-"));
    CHECK_EQ(config_origin(config, config_key("Session", "Frequency"), "a").line, 5U);
    CHECK(!config_origin(config, config_key("Session", "Frequency"), "default").path);
    CHECK(!config_origin(config, config_key("Session", "Frequency"), "none").path);
    CHECK(!config_origin(config, config_key("Profd", "MinUse"), NULL).path);
    /* A key that was taken back has its default. */
    CHECK(!config_origin(config, config_key("Session", "Event"), "a").path);
}

TEST(sessions_beyond_the_limit_are_not_started) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Profd]\nMaxSessions=2\n[Session a]\nEnabled=no\n[Session b]\n[Session c]\n"
                  "Enabled=yes\n",
                  &config, &problems),
             1);
    CHECK_EQ(problems.line, 7U);
    CHECK(config_session(config, "b")->enabled && !config_session(config, "c")->enabled);
}

TEST(the_example_of_the_manual_is_valid) {
    _cleanup_(config_freep) Config *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Session locks]\nEvent=lock:contention_begin\nPeriod=100\nMaxUse=256M\n",
                  &config, &problems),
             0);
}

TEST_MAIN()
