/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/event/event-symbol.h"
#include "config/config.h"
#include "recorder/daemon.h"
#include "recorder/host-check.h"
#include "journal/journal.h"
#include "keeper/keeper.h"
#include "keeper/rights/sandbox.h"
#include "method/method.h"
#include "program/log-event.h"
#include "program/profd-option.h"
#include "program/user-folder.h"
#include "util/log.h"

/*
 * profd: one program, two processes. The process that a user starts is the keeper, which starts the
 * program again as the recorder. Exit statuses: 0 stopped on request, 1 failed (the log has the
 * reason; with --check-config, the configuration has problems), 2 wrong usage.
 */

enum { STATUS_FAILED = 1, STATUS_USAGE = 2 };

static const char default_store[] = "/var/lib/profd", default_runtime[] = "/run/profd";

/* For the completions of profctl. */
static void profd_print_event(void *userdata _unused_, const char *name) {
    puts(name);
}

/* A typo must not stop recording: profd logs a warning and uses the default. */
static int profd_load_config(const Options *options, Config **ret) {
    int r = config_load(options->config, config_log_problem, NULL, ret);

    return r < 0 ? log_error(r, "Failed to read configuration '%s': %m",
                             options->config ? options->config : "profd.conf")
                 : r;
}

static int profd_check_config(const Options *options) {
    _cleanup_(config_freep) Config *config = NULL;
    int problems = profd_load_config(options, &config), r;

    if (problems < 0)
        return STATUS_FAILED;
    r = host_check_config(config);
    if (r < 0)
        log_warning(r, "Failed to try the events of the configuration, they are not checked: %m");
    return problems == 0 && r <= 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

/* Enter the sandbox before any file of another user is parsed. */
static int profd_connect_keeper(const Options *options, Keeper **ret) {
    int r = sandbox_recorder();

    if (r < 0)
        return log_error(r, "Failed to set up seccomp, does this kernel have it?: %m");
    r = keeper_connect(options->recorder, ret);
    if (r == 0)
        r = keeper_take_over(*ret);
    if (r == -EPROTO)
        return log_error(r, "The keeper is of another version than this recorder, restart profd");
    return r < 0 ? log_error(r, "Failed to reach the keeper: %m") : 0;
}

static int profd_record(const Options *options, char **argv) {
    _cleanup_(keeper_disconnectp) Keeper *keeper = NULL;
    _cleanup_(daemon_freep) Daemon *daemon = NULL;
    Config *config = NULL;
    int r = profd_connect_keeper(options, &keeper);

    if (r == 0)
        r = profd_load_config(options, &config);
    if (r < 0)
        return STATUS_FAILED;
    r = daemon_new(&(DaemonOptions){.store = options->store ?: default_store,
                                    .runtime = options->runtime ?: default_runtime,
                                    .config_path = options->config,
                                    .argv = argv,
                                    .keeper = keeper,
                                    .methods = &daemon_methods},
                   config, &daemon);
    if (r < 0)
        log_error(r, "Failed to start the recorder: %m");
    else
        r = daemon_run(daemon);
    return r < 0 ? STATUS_FAILED : EXIT_SUCCESS;
}

/* The folders of the system are root's. Other users have folders of their own, and the recorder
 * gets their paths as options, because it may run as another user. */
static int profd_keep(const Options *options, int argc, char **argv) {
    _cleanup_(user_folders_done) UserFolders own = {};
    KeeperOptions keeper = {.argv = argv,
                            .store = options->store ?: default_store,
                            .runtime = options->runtime ?: default_runtime};
    int r;

    if (geteuid() == 0)
        return keeper_run(&keeper);
    r = user_folders_find(options, argc, argv, &own);
    if (r < 0) {
        log_error(r, "Failed to find a folder for recordings, name one with --store: %m");
        return STATUS_FAILED;
    }
    keeper.argv = own.argv;
    keeper.store = options->store ?: own.store;
    /* Without a runtime folder there is none; code that needs it reports that. */
    keeper.runtime = options->runtime ?: own.runtime;
    return keeper_run(&keeper);
}

int main(int argc, char **argv) {
    Options options = {.recorder = -1};

    if (program_options_parse(&profd_options, argc, argv, &options) < 0)
        return STATUS_USAGE;
    if (options.help)
        program_options_print_help(&profd_options);
    if (options.version)
        printf("profd %s\n", PROFD_VERSION);
    if (options.print_config_keys)
        config_table_print(config_table());
    if (options.print_events)
        event_each_symbol(profd_print_event, NULL);
    if (options.print_options)
        program_options_print_table(&profd_options);
    if (options.help || options.version || options.print_config_keys || options.print_events ||
        options.print_options)
        return EXIT_SUCCESS;
    journal_attach(&profd_journal);
    if (options.check_config)
        return profd_check_config(&options);
    signal(SIGPIPE, SIG_IGN);
    if (options.recorder < 0)
        return profd_keep(&options, argc, argv);
    /* The last argument comes from the keeper and is not part of the command line in recordings. */
    argv[argc - 1] = NULL;
    return profd_record(&options, argv);
}
