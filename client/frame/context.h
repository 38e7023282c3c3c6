/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What every command of profctl has: the global options, the output, and messages on stderr.
 */

#include "client/frame/host-list.h"
#include "client/frame/output.h"
#include "util/fields.h"

typedef enum ExitStatus {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_NOT_RUNNING = 3,
    STATUS_NOT_PERMITTED = 4,
    STATUS_NOT_FOUND = 5,
    STATUS_TIMED_OUT = 6,
    STATUS_DEGRADED = 7,
    STATUS_PARTIAL = 8,
} ExitStatus;

typedef enum JsonMode { JSON_OFF, JSON_SHORT, JSON_PRETTY } JsonMode;

/* The tables of profctl, the values of the global options, and the output. */
typedef struct Context {
    const struct Command *const *commands; /* ended by NULL */
    const Option *options;                 /* the global options */
    JsonMode json;
    bool no_pager, no_legend, quiet;
    bool help, version, print_options;
    const char *command; /* the name of the running command */
    const char *socket;  /* of the daemon; NULL: the default */
    int argc;            /* the original command line, before options were sorted out */
    char *const *argv;
    OptionHosts hosts; /* where the command shall run instead of here */
    unsigned remote;   /* the profctl of another host started us; 0: it did not */
    Output out;        /* stdout; a command appends to out.buffer, see output.h */
} Context;

/* Starts the pager for c->out if options and terminal call for one; a command with a long result
 * calls it before it prints. */
void context_page(Context *c);
/* $COLUMNS, or the width of the terminal that shows the result, also behind a pager. 0: no limit,
 * nothing is wrapped or cut. */
unsigned context_width(const Context *c);
/* Whether colours may be used: the terminal has them and $NO_COLOR is not set. */
bool context_colors(const Context *c);
static inline FieldsFormat context_fields_format(const Context *c) {
    return c->json == JSON_PRETTY  ? FIELDS_JSON_PRETTY
           : c->json == JSON_SHORT ? FIELDS_JSON
                                   : FIELDS_TEXT;
}

/* Prints "profctl: …" and a newline on stderr, escaped; returns `status`. The message is one
 * sentence with a full stop that says what failed, on which object, why, and what the user can
 * do. */
int complain(int status, const char *format, ...) _printf_(2, 3);
/* The same for a sentence that is escaped already. */
int complain_shown(int status, const char *sentence);
/* The same for what does not stop the command; --quiet suppresses it. */
void remark(const Context *c, const char *format, ...) _printf_(2, 3);
/* The same for a sentence that is safe to show, whatever --quiet says; nothing when memory ran out.
 */
void remark_buffer(Buffer *sentence);
