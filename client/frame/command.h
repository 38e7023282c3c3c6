/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a command of profctl is: one file, one const row. profctl.c holds the table of all commands,
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
 * and add `extern const Command command_name;` to profctl.h and its row to `commands` in profctl.c.
 */

#include "client/frame/context.h"
#include "client/frame/option.h"

/* Commands of a group are listed together. */
typedef enum CommandGroup {
    COMMAND_DAEMON,    /* asks the daemon */
    COMMAND_VIEW,      /* shows samples, of recordings or of the daemon */
    COMMAND_RECORDING, /* works on recordings, not on the daemon */
} CommandGroup;

/* The words that an option takes, separated by commas. Completions offer them. */
typedef struct CommandWords {
    const char *option;       /* its long name; NULL: no option */
    const char *const *items; /* ends with NULL */
} CommandWords;

typedef struct Command {
    const char *name;
    CommandGroup group;
    const char *arguments; /* as shown in the usage line */
    unsigned n_min, n_max; /* the number of arguments; UINT_MAX: unlimited */
    const char *summary;   /* one line without a full stop */
    const char *notes;     /* paragraphs for --help, which wraps them; may be NULL */
    const Option *options; /* ends with a row of zeros; may be NULL */
    CommandWords words;
    size_t settings_size; /* run() gets this many bytes, zeroed and filled by the options */
    /* Returns an ExitStatus. Failures must have been reported with complain(), except those of
     * c->out, which the frame reports. arguments ends with NULL; "-" as a file means stdin or
     * stdout. */
    int (*run)(Context *c, void *settings, char **arguments);
    void (*done)(void *settings); /* frees what the options have stored in settings; may be NULL */
    bool live;                    /* prints events as they happen, maybe without an end */
    /* Whether a recording goes to stdout; NULL: never. */
    bool (*streams)(const void *settings, char **arguments);
} Command;

const Command *command_by_name(const Command *const *commands, const char *name);
/* Complains that no command has this name and suggests a similar one. Returns STATUS_USAGE. */
int command_complain_unknown(const Command *const *commands, const char *name);
