/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/help.h"

#include <string.h>

#include "client/frame/screen.h"
#include "client/frame/width.h"
#include "util/text.h"

/*
 * Help for people and for scripts, and the command `help`. Everything comes from the tables; there
 * is no second list.
 */

enum { NAME_COLUMN_MAX = 26, WIDTH_DEFAULT = 80, WIDTH_MIN = 40 };

/* Help is wrapped even in a pipe, where nothing else is. */
static size_t help_width(const Context *c) {
    size_t width = context_width(c);

    return width ? MAX(width, (size_t)WIDTH_MIN) : WIDTH_DEFAULT;
}

static void help_spaces(Buffer *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        text_putc(out, ' ');
}

/* Prints a name in a column of its own and the text next to it, or below it if the name is too
 * long. */
static void help_print_row(Context *c, const char *name, size_t column, const char *help) {
    Buffer *out = &c->out.buffer;
    size_t n = width_of(name, strlen(name));

    text_puts(out, name);
    if (n + 2 > column) {
        text_putc(out, '\n');
        n = 0;
    }
    help_spaces(out, column - n);
    screen_wrap(out, help, column, column, help_width(c));
}

static void help_option_name(Buffer *out, const Option *o) {
    buffer_clear(out);
    if (o->short_name)
        text_printf(out, "  -%c, ", o->short_name);
    else
        text_puts(out, "      ");
    text_printf(out, "--%s", o->long_name);
    if (o->argument && o->argument[0] == '[')
        text_printf(out, "[=%s", o->argument + 1);
    else if (o->argument)
        text_printf(out, "=%s", o->argument);
    text_putc(out, '\0');
}

static void help_print_table(Context *c, const char *title, const Option *options) {
    Buffer *out = &c->out.buffer;
    Buffer name = {};
    size_t column = 0;

    if (!options || !options->long_name)
        return;
    text_printf(out, "\n%s:\n", title);
    for (const Option *o = options; o->long_name; o++) {
        size_t n;

        help_option_name(&name, o);
        n = width_of((const char *)name.data, name.size) + 1;
        if (n <= NAME_COLUMN_MAX)
            column = MAX(column, n);
    }
    column = column ? column : NAME_COLUMN_MAX;
    for (const Option *o = options; o->long_name; o++) {
        if (!o->help)
            continue;
        help_option_name(&name, o);
        if (!buffer_error(&name))
            help_print_row(c, (const char *)name.data, column, o->help);
    }
    buffer_done(&name);
}

static void help_print_commands(Context *c, const char *title, CommandGroup group, size_t column) {
    const Command *const *commands = c->commands;
    Buffer *out = &c->out.buffer;
    Buffer name = {};

    text_printf(out, "%s:\n", title);
    for (size_t i = 0; commands[i]; i++) {
        if (commands[i]->group != group)
            continue;
        buffer_clear(&name);
        text_printf(&name, "  %s %s", commands[i]->name, commands[i]->arguments);
        text_putc(&name, '\0');
        if (!buffer_error(&name))
            help_print_row(c, (const char *)name.data, column, commands[i]->summary);
    }
    buffer_done(&name);
}

void help_print_program(Context *c) {
    const Command *const *commands = c->commands;
    Buffer *out = &c->out.buffer;
    size_t column = 0;

    text_puts(out, "Usage: profctl [OPTION…] COMMAND [ARGUMENT…]\n\n"
                   "Controls the profiler profd, and reads recordings of perf and profd.\n\n");
    for (size_t i = 0; commands[i]; i++)
        column =
            MAX(column, strlen(commands[i]->name) +
                            width_of(commands[i]->arguments, strlen(commands[i]->arguments)) + 5);
    column = MIN(column, (size_t)NAME_COLUMN_MAX + 4);
    help_print_commands(c, "Commands", COMMAND_DAEMON, column);
    help_print_commands(c, "\nViews of samples, of the running profd or of recordings",
                        COMMAND_VIEW, column);
    help_print_commands(c, "\nCommands for recordings, without a daemon", COMMAND_RECORDING,
                        column);
    help_print_table(c, "Options, before or after the command", c->options);
    text_puts(out, "\n'profctl COMMAND --help' lists the options of a command.\n"
                   "Exit status: 0 done, 1 failed, 2 wrong usage, 3 profd is not running,\n"
                   "4 not permitted, 5 not found, 6 timed out, 7 degraded, 8 done in part.\n");
}

/* An empty line separates paragraphs; line ends within a paragraph are ignored. */
static void help_print_notes(Context *c, const char *notes) {
    Buffer *out = &c->out.buffer;

    while (*notes) {
        const char *end = strstr(notes, "\n\n");
        size_t n = end ? (size_t)(end - notes) : strlen(notes);
        _cleanup_free_ char *paragraph = strndup(notes, n);

        text_putc(out, '\n');
        if (paragraph)
            screen_wrap(out, paragraph, 0, 0, help_width(c));
        notes += n + (end ? 2 : 0);
    }
}

void help_print_command(Context *c, const Command *command) {
    Buffer *out = &c->out.buffer;

    text_printf(out, "Usage: profctl %s%s%s%s\n\n", command->name,
                command->options ? " [OPTION…]" : "", *command->arguments ? " " : "",
                command->arguments);
    screen_wrap(out, command->summary, 0, 0, help_width(c));
    if (command->notes)
        help_print_notes(c, command->notes);
    help_print_table(c, "Options", command->options);
    help_print_table(c, "Options of every command", c->options);
}

/* Known words stand instead of what the argument is called: "a|b|c,…". */
static void help_print_argument(Buffer *out, const Option *o, const CommandWords *words) {
    if (!words->option || strcmp(words->option, o->long_name) != 0) {
        text_puts(out, o->argument ? o->argument : "");
        return;
    }
    for (size_t i = 0; words->items[i]; i++)
        text_printf(out, "%s%s", i > 0 ? "|" : "", words->items[i]);
    text_puts(out, ",…");
}

static void help_print_option_rows(Buffer *out, const char *command, const Option *options,
                                   const CommandWords *words) {
    for (const Option *o = options; o && o->long_name; o++) {
        if (!o->help)
            continue;
        text_printf(out, "%s\t", command);
        if (o->short_name)
            text_printf(out, "-%c", o->short_name);
        text_printf(out, "\t--%s\t", o->long_name);
        help_print_argument(out, o, words);
        text_printf(out, "\t%s\n", o->help);
    }
}

void help_print_options(Context *c) {
    const Command *const *commands = c->commands;
    Buffer *out = &c->out.buffer;

    help_print_option_rows(out, "*", c->options, &(CommandWords){});
    for (size_t i = 0; commands[i]; i++) {
        text_printf(out, "%s\t\t\t%s\t%s\n", commands[i]->name, commands[i]->arguments,
                    commands[i]->summary);
        help_print_option_rows(out, commands[i]->name, commands[i]->options, &commands[i]->words);
    }
}

static int help_run(Context *c, void *settings, char **arguments) {
    const Command *command = arguments[0] ? command_by_name(c->commands, arguments[0]) : NULL;

    if (arguments[0] && !command)
        return command_complain_unknown(c->commands, arguments[0]);
    if (command)
        help_print_command(c, command);
    else
        help_print_program(c);
    return STATUS_OK;
}

const Command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .n_max = 1,
    .summary = "Explain profctl or one of its commands",
    .run = help_run,
};
