/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/program-option.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/near.h"
#include "util/parse.h"
#include "util/text.h"

/* Walks a table of options with getopt_long(). It prints, because there is no log yet. */

enum { PROGRAM_OPTIONS_MAX = 16 };

bool program_option_flag(const char *argument _unused_, void *field) {
    *(bool *)field = true;
    return true;
}

bool program_option_text(const char *argument, void *field) {
    *(const char **)field = argument;
    return *argument;
}

bool program_option_descriptor(const char *argument, void *field) {
    uint64_t fd;

    if (parse_u64(argument, &fd) < 0 || fd > INT_MAX)
        return false;
    *(int *)field = (int)fd;
    return true;
}

bool program_option_log_level(const char *argument, void *field _unused_) {
    LogLevel level;

    if (log_level_from_name(argument, &level) < 0)
        return false;
    log_set_level(level);
    return true;
}

static const char *program_option_placeholder(const ProgramOption *row) {
    return row->value ? row->value : "no value";
}

/* Says what is wrong with a word that getopt_long() has refused. */
static void program_option_refuse(const ProgramOptions *options, int result, const char *word) {
    size_t n = strcspn(word, "="), dashes = strspn(word, "-");
    char name[NEAR_NAME_MAX], offer[NEAR_NAME_MAX];
    NearNames near = {};
    _cleanup_(buffer_done) Buffer text = {};

    snprintf(name, sizeof(name), "%.*s", (int)(n > dashes ? n - dashes : 0), word + dashes);
    for (size_t i = 0; i < options->n; i++) {
        const ProgramOption *row = &options->rows[i];

        if (strcmp(row->name, name) == 0) {
            fprintf(stderr, "%s: --%s takes %s%s\n", options->program, name,
                    program_option_placeholder(row), result == ':' ? ", which is missing" : "");
            return;
        }
        snprintf(offer, sizeof(offer), "--%s", row->name);
        if (row->help)
            near_offer(&near, offer, near_distance(name, row->name));
    }
    text_printf(&text, "%s: there is no option '%s'", options->program, word);
    near_put_question(&near, &text);
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        fprintf(stderr, "%s\n", (const char *)text.data);
}

int program_options_parse(const ProgramOptions *options, int argc, char **argv, void *settings) {
    struct option longs[PROGRAM_OPTIONS_MAX + 1] = {};
    int index;

    assert(options->n <= PROGRAM_OPTIONS_MAX);
    for (size_t i = 0; i < options->n; i++)
        longs[i] =
            (struct option){.name = options->rows[i].name,
                            .has_arg = options->rows[i].value ? required_argument : no_argument};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", longs, &index)) != -1;) {
        const ProgramOption *row = &options->rows[index];

        if (c != 0) {
            program_option_refuse(options, c, argv[optind - 1]);
            return -EINVAL;
        }
        if (!row->parse(optarg, (char *)settings + row->offset)) {
            fprintf(stderr, "%s: --%s takes %s, not '%s'\n", options->program, row->name,
                    row->expected, optarg);
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: takes no argument '%s', see %s --help\n", options->program,
                argv[optind], options->program);
        return -EINVAL;
    }
    return 0;
}

void program_options_print_help(const ProgramOptions *options) {
    printf("Usage: %s [OPTION...]\n\n%s\n\n", options->program, options->purpose);
    for (size_t i = 0; i < options->n; i++) {
        const ProgramOption *row = &options->rows[i];
        char left[32];

        if (!row->help)
            continue;
        snprintf(left, sizeof(left), "--%s%s%s", row->name, row->value ? "=" : "",
                 row->value ? row->value : "");
        printf("  %-20s %s\n", left, row->help);
    }
    printf("\nStops on SIGTERM or SIGINT, reads its configuration again on SIGHUP. See %s(8).\n",
           options->program);
}

void program_options_print_table(const ProgramOptions *options) {
    for (size_t i = 0; i < options->n; i++)
        if (options->rows[i].help)
            printf("*\t\t--%s\t%s\t%s\n", options->rows[i].name,
                   options->rows[i].value ? options->rows[i].value : "", options->rows[i].help);
}
