/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes log lines as entries of the journal, with structured fields. */

#include <sys/uio.h>

#include "util/log.h"

enum { JOURNAL_ENTRY_MAX = 24 };

typedef struct JournalEvent {
    const char *name; /* the value of PROFD_EVENT= */
    const char *id;   /* MESSAGE_ID= */
} JournalEvent;

/* The program that logs. */
typedef struct JournalProgram {
    const char *identifier; /* SYSLOG_IDENTIFIER= */
    const JournalEvent *events;
    size_t n_events;
} JournalProgram;

/* Each field is "NAME=value", in memory that journal_entry_done() frees. */
typedef struct JournalEntry {
    struct iovec fields[JOURNAL_ENTRY_MAX];
    size_t n;
} JournalEntry;

void journal_entry_done(JournalEntry *entry);
/* -E2BIG: too many fields for an entry; -EINVAL: the journal would not accept a field's name. */
int journal_entry(const JournalProgram *program, LogLevel level, int error, const char *message,
                  const LogField *fields, size_t n, JournalEntry *ret);

/* Whether `fd` is the stream to the journal that `stream`, the text of $JOURNAL_STREAM,
 * identifies. */
bool journal_is_stream(int fd, const char *stream);
/* If stderr is a stream to the journal, lines become journal entries from now on. `program` must
 * live as long as lines are logged. */
void journal_attach(const JournalProgram *program);
