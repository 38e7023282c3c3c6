/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "test.h"
#include "util/clock.h"

/* Lines as they leave: on a pipe in place of stderr, and in the hands of a backend. */

typedef struct Taken {
    LogLevel level;
    int error;
    char message[2048];
    char fields[512];
    unsigned n;
} Taken;

static Taken taken;
static int answer;

static int take(LogLevel level, int error, const char *message, const LogField *fields, size_t n) {
    taken.level = level;
    taken.error = error;
    taken.n++;
    snprintf(taken.message, sizeof(taken.message), "%s", message);
    taken.fields[0] = '\0';
    for (size_t i = 0; i < n; i++)
        sprintf(taken.fields + strlen(taken.fields), "%s=%s;", fields[i].name, fields[i].value);
    return answer;
}

/* The text that a function writes to stderr. */
static size_t said_by(void (*fn)(void), char *ret, size_t size) {
    _cleanup_close_ int old = dup(STDERR_FILENO);
    int fds[2];
    ssize_t n;

    ret[0] = '\0';
    if (old < 0 || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return 0;
    (void)dup2(fds[1], STDERR_FILENO);
    fn();
    (void)dup2(old, STDERR_FILENO);
    n = read(fds[0], ret, size - 1);
    (void)close(fds[0]);
    (void)close(fds[1]);
    ret[MAX(n, 0)] = '\0';
    return (size_t)MAX(n, 0);
}

static void say_something(void) {
    CHECK_EQ(log_error(-ENOENT, "Failed to open '%s': %m", "a\x1b[2Jb"), -ENOENT);
}

static void say_too_much(void) {
    log_debug("nobody wants to know");
}

static void say_with_fields(void) {
    const LogField fields[] = {{"PROFD_SESSION", "x\ny"}, {"PROFD_LOST", "7"}};

    CHECK_EQ(log_struct(LOG_LEVEL_NOTICE, 0, fields, 2, "%d lost", 7), 0);
}

TEST(a_line_on_stderr_is_one_line_with_hostile_bytes_escaped) {
    char said[512];

    (void)unsetenv("JOURNAL_STREAM");
    (void)said_by(say_something, said, sizeof(said));
    CHECK_STREQ(said, "Failed to open 'a\\x1b[2Jb': No such file or directory\n");
    (void)said_by(say_with_fields, said, sizeof(said));
    CHECK_STREQ(said, "7 lost\n");
}

TEST(a_line_for_the_journal_begins_with_its_priority) {
    char said[512];

    (void)setenv("JOURNAL_STREAM", "1:2", 1);
    (void)said_by(say_something, said, sizeof(said));
    (void)unsetenv("JOURNAL_STREAM");
    CHECK(strncmp(said, "<3>Failed", 9) == 0);
}

TEST(lines_above_the_level_are_dropped) {
    char said[512];

    CHECK_EQ(said_by(say_too_much, said, sizeof(said)), (size_t)0);
    log_set_level(LOG_LEVEL_DEBUG);
    CHECK(said_by(say_too_much, said, sizeof(said)) > 0);
    log_set_level(LOG_LEVEL_INFO);
}

TEST(a_backend_gets_the_parts_of_a_line_and_stderr_gets_nothing) {
    char said[512];

    answer = 0;
    log_set_backend(take);
    CHECK_EQ(said_by(say_with_fields, said, sizeof(said)), (size_t)0);
    CHECK_EQ(taken.level, LOG_LEVEL_NOTICE);
    CHECK_STREQ(taken.message, "7 lost");
    CHECK_STREQ(taken.fields, "PROFD_SESSION=x\\x0ay;PROFD_LOST=7;");
    CHECK_EQ(said_by(say_something, said, sizeof(said)), (size_t)0);
    CHECK_EQ(taken.error, -ENOENT);
    CHECK_STREQ(taken.fields, "");
    log_set_backend(NULL);
}

TEST(lines_refused_by_the_backend_go_to_stderr) {
    char said[512];

    answer = -ECONNREFUSED;
    log_set_backend(take);
    (void)said_by(say_with_fields, said, sizeof(said));
    log_set_backend(NULL);
    CHECK_STREQ(said, "7 lost\n");
}

TEST(logging_a_line_keeps_errno) {
    answer = 0;
    errno = ECHILD;
    log_set_backend(take);
    say_something();
    log_set_backend(NULL);
    CHECK_EQ(errno, ECHILD);
}

TEST(a_burst_is_logged_up_to_its_limit_and_the_rest_is_counted) {
    LogRate rate = {.interval_ns = 100, .burst = 2};
    uint64_t left_out = 99;

    CHECK(log_rate_pass(&rate, 5, &left_out));
    CHECK_EQ(left_out, (uint64_t)0);
    CHECK(log_rate_pass(&rate, 50, &left_out));
    CHECK(!log_rate_pass(&rate, 51, &left_out));
    CHECK(!log_rate_pass(&rate, 104, &left_out));
    CHECK(log_rate_pass(&rate, 105, &left_out));
    CHECK_EQ(left_out, (uint64_t)2);
    CHECK(log_rate_pass(&rate, 106, &left_out));
    CHECK_EQ(left_out, (uint64_t)0);
    CHECK(!log_rate_pass(&rate, 107, &left_out));
}

TEST(a_thread_that_comes_late_with_its_time_begins_no_new_interval) {
    LogRate rate = {.interval_ns = 100, .burst = 1};
    uint64_t left_out;

    CHECK(log_rate_pass(&rate, 50, &left_out));
    CHECK(!log_rate_pass(&rate, 49, &left_out));
    CHECK(!log_rate_pass(&rate, 149, &left_out));
    CHECK(log_rate_pass(&rate, 150, &left_out));
}

TEST(a_rate_limited_line_has_the_number_of_dropped_lines) {
    LogRate rate = {.interval_ns = 0, .burst = 1, .n = 1, .left_out = 3};

    answer = 0;
    log_set_backend(take);
    CHECK_EQ(log_limited(&rate, LOG_LEVEL_WARNING, -EIO, "CPU %d lost", 3), -EIO);
    CHECK_STREQ(taken.message, "CPU 3 lost (3 more like this were not logged)");
    rate = (LogRate){.interval_ns = 3600 * NS_PER_SECOND, .burst = 1};
    taken.n = 0;
    for (unsigned i = 0; i < 5; i++)
        (void)log_limited(&rate, LOG_LEVEL_WARNING, 0, "often");
    log_set_backend(NULL);
    CHECK_EQ(taken.n, 1U);
    CHECK_EQ(rate.left_out, (uint64_t)4);
}

TEST(a_rate_limited_line_has_its_fields) {
    LogRate rate = {.interval_ns = 3600 * NS_PER_SECOND, .burst = 1};

    answer = 0;
    taken.n = 0;
    log_set_backend(take);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(log_limited_struct(&rate, LOG_LEVEL_NOTICE, -EIO,
                                    LOG_FIELDS({"PROFD_EVENT", "x"}, {"PROFD_LOST", "7"}), "%d", 1),
                 -EIO);
    log_set_backend(NULL);
    CHECK_EQ(taken.n, 1U);
    CHECK_STREQ(taken.fields, "PROFD_EVENT=x;PROFD_LOST=7;");
    CHECK_EQ(rate.left_out, (uint64_t)2);
}

static LogRate shared = {.interval_ns = 3600 * NS_PER_SECOND, .burst = 10};
static _Atomic unsigned passed;

static int count(LogLevel level _unused_, int error _unused_, const char *message _unused_,
                 const LogField *fields _unused_, size_t n _unused_) {
    passed++;
    return 0;
}

static void *log_often(void *userdata _unused_) {
    for (unsigned i = 0; i < 1000; i++)
        (void)log_limited(&shared, LOG_LEVEL_WARNING, 0, "often");
    return NULL;
}

TEST(threads_share_one_rate_limit) {
    pthread_t threads[4];

    log_set_backend(count);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, log_often, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    log_set_backend(NULL);
    CHECK_EQ((unsigned)passed, 10U);
    CHECK_EQ(shared.left_out, (uint64_t)3990);
}

TEST_MAIN()
