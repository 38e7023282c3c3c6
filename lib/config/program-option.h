/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The command line of a service: a table of options, with everything about an option in its row.
 * Parsing, --help and the table for the completions use the same rows.
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct ProgramOption {
    const char *name;
    const char *value; /* NULL: no argument */
    const char *help;  /* NULL: hidden */
    /* Stores the argument into the field at `offset`; false if it is invalid. */
    bool (*parse)(const char *argument, void *field);
    size_t offset;
    const char *expected; /* which arguments are valid, for people */
} ProgramOption;

typedef struct ProgramOptions {
    const char *program;
    const char *purpose; /* one sentence */
    const ProgramOption *rows;
    size_t n;
} ProgramOptions;

/* Field: bool. */
bool program_option_flag(const char *argument, void *field);
/* Field: const char *, borrowed from argv. Refuses an empty argument. */
bool program_option_text(const char *argument, void *field);
/* Field: int, a descriptor. */
bool program_option_descriptor(const char *argument, void *field);
/* No field: sets the log level at once. */
bool program_option_log_level(const char *argument, void *field);

/* -EINVAL, with the reason on stderr. Fields of options that are not given stay as they are. */
int program_options_parse(const ProgramOptions *options, int argc, char **argv, void *settings);
/* Prints the text of --help. */
void program_options_print_help(const ProgramOptions *options);
/* Prints the options for the program that makes the shell completions. */
void program_options_print_table(const ProgramOptions *options);
