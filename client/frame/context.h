/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What every command of profctl has: the global options, the way out, and the sentences on stderr.
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

/* The tables of profctl, the values of the global options, and where the result goes. */
typedef struct Context {
    const struct Command *const *commands; /* ended by NULL */
    const Option *options;                 /* which every command takes */
    JsonMode json;
    bool no_pager, no_legend, quiet;
    bool help, version, print_options;
    const char *command; /* that runs, by its name */
    const char *socket;  /* of the daemon; NULL: where it is by default */
    int argc;            /* as we were called, before options were sorted out */
    char *const *argv;
    OptionHosts hosts; /* where the command is to run instead of here */
    unsigned remote;   /* we were started by the profctl of another host; 0: we were not */
    Output out;        /* stdout; a command appends to out.buffer, see output.h */
} Context;

/* Opens the pager in front of c->out where the options and the terminal ask for one; a command
 * whose result may be long calls it before it prints. */
void context_page(Context *c);
/* $COLUMNS, or the columns of the terminal that the result ends up on, behind a pager too. 0: there
 * is no limit, and nothing is wrapped or cut. */
unsigned context_width(const Context *c);
/* Whether it may be coloured: a terminal that can, and no $NO_COLOR. */
bool context_colors(const Context *c);
static inline FieldsFormat context_fields_format(const Context *c) {
    return c->json == JSON_PRETTY  ? FIELDS_JSON_PRETTY
           : c->json == JSON_SHORT ? FIELDS_JSON
                                   : FIELDS_TEXT;
}

/* "profctl: …" and a newline on stderr, escaped; returns `status`. One sentence with a full stop
 * that says what failed, on what, why, and what can be done. */
int complain(int status, const char *format, ...) _printf_(2, 3);
/* The same for a sentence that is safe to show as it is. */
int complain_shown(int status, const char *sentence);
/* The same for what does not stop us; --quiet drops it. */
void remark(const Context *c, const char *format, ...) _printf_(2, 3);
/* The same for a sentence that is safe to show, whatever --quiet says; nothing when memory ran out.
 */
void remark_buffer(Buffer *sentence);
