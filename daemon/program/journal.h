/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Log lines as entries of the journal, with fields of their own. */

#include <sys/uio.h>

#include "util/log.h"

enum { JOURNAL_ENTRY_MAX = 24 };

/* "NAME=value" each, in memory that the owner frees by journal_entry_done(). */
typedef struct JournalEntry {
    struct iovec fields[JOURNAL_ENTRY_MAX];
    size_t n;
} JournalEntry;

void journal_entry_done(JournalEntry *entry);
/* -E2BIG: more fields than an entry may have; -EINVAL: one has no name that the journal takes. */
int journal_entry(LogLevel level, int error, const char *message, const LogField *fields, size_t n,
                  JournalEntry *ret);

/* Whether `fd` is the stream to the journal that `stream`, the text of $JOURNAL_STREAM, names. */
bool journal_is_stream(int fd, const char *stream);
/* Where stderr is a stream to the journal, lines go there as entries from now on. */
void journal_attach(void);
