/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

/* Entries of the journal as they are built, and whether stderr leads there at all. */

static const JournalEvent events[] = {{"recorder-died", "0cda6754c9e9458d8e9b64e69edccdbf"}};
static const JournalProgram program = {.identifier = "profd", .events = events, .n_events = 1};

static const char *field(const JournalEntry *entry, size_t i) {
    static char text[512];

    if (i >= entry->n)
        return "";
    snprintf(text, sizeof(text), "%.*s", (int)entry->fields[i].iov_len,
             (const char *)entry->fields[i].iov_base);
    return text;
}

TEST(an_entry_has_event_priority_cause_and_session) {
    _cleanup_(journal_entry_done) JournalEntry entry = {};
    const LogField fields[] = {{"PROFD_SESSION", "default"}, {"MESSAGE_ID", "00ff"}};

    CHECK_OK(
        journal_entry(&program, LOG_LEVEL_ERROR, -ENOSPC, "No room = none", fields, 2, &entry));
    CHECK_EQ(entry.n, (size_t)6);
    CHECK_STREQ(field(&entry, 0), "MESSAGE=No room = none");
    CHECK_STREQ(field(&entry, 1), "PRIORITY=3");
    CHECK_STREQ(field(&entry, 2), "SYSLOG_IDENTIFIER=profd");
    CHECK_STREQ(field(&entry, 3), "ERRNO=28");
    CHECK_STREQ(field(&entry, 4), "PROFD_SESSION=default");
    CHECK_STREQ(field(&entry, 5), "MESSAGE_ID=00ff");
}

TEST(an_entry_that_names_an_event_has_its_number) {
    _cleanup_(journal_entry_done) JournalEntry entry = {}, other = {};
    const LogField known = {"PROFD_EVENT", "recorder-died"}, unknown = {"PROFD_EVENT", "tea"};

    CHECK_OK(journal_entry(&program, LOG_LEVEL_INFO, 0, "m", &known, 1, &entry));
    CHECK_EQ(entry.n, (size_t)5);
    CHECK_STREQ(field(&entry, 3), "PROFD_EVENT=recorder-died");
    CHECK_STREQ(field(&entry, 4), "MESSAGE_ID=0cda6754c9e9458d8e9b64e69edccdbf");
    CHECK_OK(journal_entry(&program, LOG_LEVEL_INFO, 0, "m", &unknown, 1, &other));
    CHECK_EQ(other.n, (size_t)4);
}

TEST(an_entry_without_an_error_has_no_errno) {
    _cleanup_(journal_entry_done) JournalEntry entry = {};

    CHECK_OK(journal_entry(&program, LOG_LEVEL_DEBUG, 0, "fine", NULL, 0, &entry));
    CHECK_EQ(entry.n, (size_t)3);
    CHECK_STREQ(field(&entry, 1), "PRIORITY=7");
}

TEST(names_that_the_journal_drops_are_refused) {
    static const char *const bad[] = {"", "_PID", "lower", "A B", "A=B", "1A", "\xc3\x84"};
    _cleanup_(journal_entry_done) JournalEntry entry = {};
    LogField many[JOURNAL_ENTRY_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const LogField fields[] = {{bad[i], "x"}};

        CHECK_EQ(journal_entry(&program, LOG_LEVEL_INFO, 0, "m", fields, 1, &entry), -EINVAL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = (LogField){"A", "x"};
    CHECK_EQ(journal_entry(&program, LOG_LEVEL_INFO, 0, "m", many, ARRAY_SIZE(many), &entry),
             -E2BIG);
    CHECK_EQ(entry.n, (size_t)0);
}

TEST(stderr_is_the_journal_only_if_device_and_inode_match) {
    int fds[2];
    struct stat st;
    char text[64];

    CHECK_OK(pipe(fds));
    CHECK_OK(fstat(fds[1], &st));
    snprintf(text, sizeof(text), "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev, (uint64_t)st.st_ino);
    CHECK(journal_is_stream(fds[1], text));
    strcat(text, "0");
    CHECK(!journal_is_stream(fds[1], text));
    CHECK(!journal_is_stream(fds[1], "1:2") && !journal_is_stream(fds[1], ""));
    CHECK(!journal_is_stream(fds[1], NULL) && !journal_is_stream(-1, text));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

TEST_MAIN()
