/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/profctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/frame/help.h"
#include "client/host/host-words.h"
#include "client/report/overview.h"
#include "util/text.h"

/*
 * The table of commands and the global options; runs a command line and returns the exit status. It
 * owns the settings of the running command, and stdout: a failed write to stdout turns success into
 * failure.
 */

static int profctl_option_json(const Option *option, const char *argument, void *field) {
    JsonMode *json = field;

    if (!argument)
        *json = isatty(STDOUT_FILENO) ? JSON_PRETTY : JSON_SHORT;
    else if (strcmp(argument, "pretty") == 0)
        *json = JSON_PRETTY;
    else if (strcmp(argument, "short") == 0)
        *json = JSON_SHORT;
    else if (strcmp(argument, "off") == 0)
        *json = JSON_OFF;
    else
        return -EINVAL;
    return 0;
}

/* clang-format off */
const Option global_options[] = {
    {'j', "json",          "[pretty|short|off]", "Print JSON: pretty on a terminal, otherwise short, or as named", profctl_option_json, offsetof(Context, json)},
    {0,   "socket",        "PATH", "Talk to the daemon at this socket",      option_string, offsetof(Context, socket)},
    {'H', "host",          "HOST,…", "Run on these hosts, each HOST or USER@HOST, by ssh, side by side", option_hosts, offsetof(Context, hosts)},
    {0,   "no-pager",      NULL, "Do not pipe output into a pager",          option_flag, offsetof(Context, no_pager)},
    {0,   "no-legend",     NULL, "Leave out headings and hints",             option_flag, offsetof(Context, no_legend)},
    {'q', "quiet",         NULL, "Print errors alone on stderr, no remarks", option_flag, offsetof(Context, quiet)},
    {'h', "help",          NULL, "Show this help",                           option_flag, offsetof(Context, help)},
    {0,   "version",       NULL, "Show the version",                         option_flag, offsetof(Context, version)},
    {0,   "print-options", NULL, NULL,                                       option_flag, offsetof(Context, print_options)},
    {0,   "remote",        "leash|stdin", NULL,                              option_choice, offsetof(Context, remote)},
    {},
};

const Command *const commands[] = {
    &command_status,
    &command_list,
    &command_show_session,
    &command_start,
    &command_stop,
    &command_pause,
    &command_resume,
    &command_rotate,
    &command_snapshot,
    &command_snapshots,
    &command_show_snapshot,
    &command_rm,
    &command_pin,
    &command_vacuum,
    &command_monitor,
    &command_metrics,
    &command_cat_config,
    &command_reload,
    &command_log_level,
    &command_ping,
    &command_doctor,
    &command_gateway,
    &command_top,
    &command_report,
    &command_diff,
    &command_changed,
    &command_flamegraph,
    &command_heatmap,
    &command_pprof,
    &command_folded,
    &command_speedscope,
    &command_firefox,
    &command_info,
    &command_verify,
    &command_dump,
    &command_convert,
    &command_merge,
    &command_archive,
    &command_help,
    NULL,
};
/* clang-format on */

static int profctl_parse(const OptionSet *sets, size_t n_sets, bool stop_at_argument, int argc,
                         char **argv, int *index, int *ret_n) {
    _cleanup_free_ char *why = NULL;
    int r = options_parse(sets, n_sets, stop_at_argument, argc, argv, index, ret_n, &why);

    if (why)
        return complain(STATUS_USAGE, "%s", why);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to read the command line: %s.", strerror(-r));
    return STATUS_OK;
}

/* Handles a command line without a command: global options such as --help, or nothing. */
static int profctl_run_bare(Context *c) {
    if (c->print_options)
        help_print_options(c);
    else if (c->version)
        text_puts(&c->out.buffer, "profctl " PROFD_VERSION "\n");
    else if (c->help)
        help_print_program(c);
    else if (isatty(STDOUT_FILENO) && c->json == JSON_OFF && c->hosts.n == 0)
        return overview_show(c);
    else
        return complain(STATUS_USAGE, "No command given, see 'profctl --help'.");
    return STATUS_OK;
}

static int profctl_run_on_hosts(Context *c, const Command *command, const void *settings,
                                char **arguments) {
    HostWork work = {
        .live = command->live,
        .streams = command->streams && command->streams(settings, arguments),
    };

    for (size_t i = 0; arguments[i]; i++)
        work.reads_stdin |= strcmp(arguments[i], "-") == 0;
    return host_run(c, &work);
}

static int profctl_run_parsed(Context *c, const Command *command, void *settings, int n,
                              char **arguments) {
    if (c->version)
        return profctl_run_bare(c);
    if (c->help) {
        help_print_command(c, command);
        return STATUS_OK;
    }
    if ((unsigned)n < command->n_min || (unsigned)n > command->n_max)
        return complain(STATUS_USAGE, "Too %s arguments; the usage is 'profctl %s%s%s%s'.",
                        (unsigned)n < command->n_min ? "few" : "many", command->name,
                        command->options ? " [OPTION…]" : "", *command->arguments ? " " : "",
                        command->arguments);
    if (c->hosts.n > 0)
        return profctl_run_on_hosts(c, command, settings, arguments);
    return command->run(c, settings, arguments);
}

/* Another host started us: its profctl embeds our output in JSON of its own, and may disconnect. */
static void profctl_serve_other_host(Context *c) {
    enum { LEASH = 1 };

    if (c->remote && c->json == JSON_PRETTY)
        c->json = JSON_SHORT;
    if (c->remote == LEASH)
        host_leash();
}

static int profctl_run_command(Context *c, int argc, char **argv, int index) {
    const Command *command = command_by_name(commands, argv[index]);
    _cleanup_free_ void *settings = NULL;
    int status, n = 0;

    if (!command)
        return command_complain_unknown(commands, argv[index]);
    c->command = command->name;
    settings = calloc(1, MAX(command->settings_size, (size_t)1));
    if (!settings)
        return complain(STATUS_FAILED, "Failed to start: %s.", strerror(ENOMEM));
    index++;
    status = profctl_parse((OptionSet[]){{command->options, settings}, {global_options, c}}, 2,
                           false, argc, argv, &index, &n);
    if (status == STATUS_OK) {
        argv[index + n] = NULL;
        profctl_serve_other_host(c);
        status = profctl_run_parsed(c, command, settings, n, argv + index);
    }
    if (command->done)
        command->done(settings);
    return status;
}

int client_run(int argc, char **argv) {
    _cleanup_free_ char **words = calloc((size_t)argc + 1, sizeof(*words));
    Context c = {.commands = commands,
                 .options = global_options,
                 .out = output_to(STDOUT_FILENO),
                 .argc = argc,
                 .argv = words};
    int index = 1, n, r, status;

    if (!words)
        return complain(STATUS_FAILED, "Failed to start: %s.", strerror(ENOMEM));
    memcpy(words, argv, (size_t)argc * sizeof(*words));
    status = profctl_parse(&(OptionSet){global_options, &c}, 1, true, argc, argv, &index, &n);
    if (status == STATUS_OK)
        status = index < argc && !c.print_options ? profctl_run_command(&c, argc, argv, index)
                                                  : profctl_run_bare(&c);
    option_hosts_done(&c.hosts);
    r = output_close(&c.out);
    output_done(&c.out);
    if (r < 0 && r != -EPIPE)
        return complain(STATUS_FAILED, "Failed to write to standard output: %s.", strerror(-r));
    return r < 0 && status == STATUS_OK ? STATUS_FAILED : status;
}
