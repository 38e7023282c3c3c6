/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a command of profctl is: one file, one const row. client.c holds the table of all commands,
 * parses the command line against the row's options and the global ones, fills the row's settings
 * and calls run(). To add a command NAME:
 *
 *     typedef struct NameSettings { bool force; const char *layout; } NameSettings;
 *
 *     static const Option name_options[] = {
 *         {'f', "force", NULL, "Replace OUT where it exists", option_flag,
 *          offsetof(NameSettings, force)},
 *         {},
 *     };
 *
 *     const Command command_name = {
 *         .name = "name", .arguments = "IN OUT", .n_min = 2, .n_max = 2,
 *         .summary = "…", .options = name_options,
 *         .settings_size = sizeof(NameSettings), .run = run_name,
 *     };
 *
 * and add `extern const Command command_name;` below and its row to `commands` in client.c.
 */

#include "client/host.h"
#include "client/option.h"
#include "client/output.h"
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

/* The global options, and where the result goes. */
typedef struct Context {
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

typedef struct Command {
    const char *name;
    bool offline;          /* concerns recordings, not the daemon; those stand together */
    const char *arguments; /* as the usage line shows them */
    unsigned n_min, n_max; /* how many arguments; UINT_MAX: no bound */
    const char *summary;   /* one line without a full stop */
    const char *notes;     /* paragraphs for --help, wrapped there; may be NULL */
    const Option *options; /* ends with a row of zeros; may be NULL */
    size_t settings_size;  /* run() gets this many bytes, zeroed and filled by the options */
    /* Returns an ExitStatus. Whatever failed has been said, by complain(); but what failed on
     * c->out is left to the frame, which sees it there. arguments ends with NULL; "-" as a file
     * means stdin or stdout. */
    int (*run)(Context *c, void *settings, char **arguments);
    void (*done)(void *settings); /* frees what the options put into settings; may be NULL */
    bool live;                    /* tells what happens while it happens, perhaps without an end */
    /* Whether stdout gets a recording; NULL: never. */
    bool (*streams)(const void *settings, char **arguments);
} Command;

extern const Command command_cat_config;
extern const Command command_convert;
extern const Command command_doctor;
extern const Command command_dump;
extern const Command command_help;
extern const Command command_info;
extern const Command command_list;
extern const Command command_log_level;
extern const Command command_merge;
extern const Command command_metrics;
extern const Command command_monitor;
extern const Command command_pause;
extern const Command command_ping;
extern const Command command_reload;
extern const Command command_resume;
extern const Command command_rotate;
extern const Command command_show_session;
extern const Command command_start;
extern const Command command_status;
extern const Command command_stop;
extern const Command command_vacuum;
extern const Command command_pin;
extern const Command command_rm;
extern const Command command_show_snapshot;
extern const Command command_snapshot;
extern const Command command_snapshots;
extern const Command command_verify;

/* The table, ended by NULL, and the global options, which every command takes. */
extern const Command *const commands[];
extern const Option global_options[];
const Command *command_by_name(const char *name);
/* There is none of this name: says so, and which one was probably meant. Returns STATUS_USAGE. */
int command_complain_unknown(const char *name);

/* All of profctl but the process around it. */
int client_run(int argc, char **argv);

/* "profctl: …" and a newline on stderr, escaped; returns `status`. One sentence with a full stop
 * that says what failed, on what, why, and what can be done. */
int complain(int status, const char *format, ...) _printf_(2, 3);
/* The same for a sentence that is safe to show as it is. */
int complain_shown(int status, const char *sentence);
/* The same for what does not stop us; --quiet drops it. */
void remark(const Context *c, const char *format, ...) _printf_(2, 3);
