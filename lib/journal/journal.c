/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "journal/journal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

/*
 * The backend of the log under systemd. A line of text has only a priority; an entry of the journal
 * also has fields (PROFD_SESSION=, PROFD_SEGMENT=), so that `journalctl PROFD_SESSION=default`
 * finds it. An entry with an event name (PROFD_EVENT=) also gets the event's message id, by which
 * journalctl finds the text in the catalog. If the journal is not running, sending fails, and the
 * line goes to stderr, which makes systemd start the journal again. An error without fields goes to
 * stderr too, because it may be the last message of a process: the journal determines the sender of
 * an entry when it reads it, and finds no unit for a process that is gone, while the stream of
 * stderr always belongs to its unit.
 */

enum { NAME_MAX_LENGTH = 64 };

/* Set once, before there are threads. */
static const JournalProgram *attached;

void journal_entry_done(JournalEntry *entry) {
    for (size_t i = 0; i < entry->n; i++)
        free(entry->fields[i].iov_base);
    entry->n = 0;
}

static int journal_add(JournalEntry *entry, const char *name, const char *format, ...)
    _printf_(3, 4);

static int journal_add(JournalEntry *entry, const char *name, const char *format, ...) {
    _cleanup_free_ char *value = NULL;
    char *text;
    va_list ap;
    int n;

    if (entry->n == ARRAY_SIZE(entry->fields))
        return -E2BIG;
    va_start(ap, format);
    n = vasprintf(&value, format, ap);
    va_end(ap);
    if (n < 0) {
        value = NULL;
        return -ENOMEM;
    }
    n = asprintf(&text, "%s=%s", name, value);
    if (n < 0)
        return -ENOMEM;
    entry->fields[entry->n++] = (struct iovec){.iov_base = text, .iov_len = (size_t)n};
    return 0;
}

/* journald silently drops a field with an invalid name. */
static bool journal_name_is_valid(const char *name) {
    size_t n = strlen(name);

    if (n == 0 || n > NAME_MAX_LENGTH || !isupper((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isupper((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_')
            return false;
    return true;
}

/* NULL: no event has that name. */
static const char *journal_event_id(const JournalProgram *program, const char *name) {
    for (size_t i = 0; i < program->n_events; i++)
        if (strcmp(program->events[i].name, name) == 0)
            return program->events[i].id;
    return NULL;
}

static int journal_add_field(const JournalProgram *program, JournalEntry *entry,
                             const LogField *field) {
    bool is_event = strcmp(field->name, "PROFD_EVENT") == 0;
    const char *id = is_event ? journal_event_id(program, field->value) : NULL;
    int r = journal_name_is_valid(field->name) ? journal_add(entry, field->name, "%s", field->value)
                                               : -EINVAL;

    return r == 0 && id ? journal_add(entry, "MESSAGE_ID", "%s", id) : r;
}

int journal_entry(const JournalProgram *program, LogLevel level, int error, const char *message,
                  const LogField *fields, size_t n, JournalEntry *ret) {
    _cleanup_(journal_entry_done) JournalEntry entry = {};
    int r = journal_add(&entry, "MESSAGE", "%s", message);

    if (r == 0)
        r = journal_add(&entry, "PRIORITY", "%d", log_level_priority(level));
    if (r == 0)
        r = journal_add(&entry, "SYSLOG_IDENTIFIER", "%s", program->identifier);
    if (r == 0 && error < 0)
        r = journal_add(&entry, "ERRNO", "%d", -error);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = journal_add_field(program, &entry, &fields[i]);
    if (r < 0)
        return r;
    *ret = entry;
    entry.n = 0;
    return 0;
}

static int journal_send(LogLevel level, int error, const char *message, const LogField *fields,
                        size_t n) {
    _cleanup_(journal_entry_done) JournalEntry entry = {};
    int r;

    if (level == LOG_LEVEL_ERROR && n == 0)
        return -ENOTCONN;
    r = journal_entry(attached, level, error, message, fields, n, &entry);
    return r < 0 ? r : sd_journal_sendv(entry.fields, (int)entry.n);
}

bool journal_is_stream(int fd, const char *stream) {
    char text[64];
    struct stat st;

    if (!stream || fstat(fd, &st) < 0)
        return false;
    (void)snprintf(text, sizeof(text), "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev,
                   (uint64_t)st.st_ino);
    return strcmp(text, stream) == 0;
}

void journal_attach(const JournalProgram *program) {
    attached = program;
    if (journal_is_stream(STDERR_FILENO, getenv("JOURNAL_STREAM")))
        log_set_backend(journal_send);
}
