/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "config/config.h"
#include "daemon.h"
#include "util/log.h"

/*
 * profd: reads its command line, records until it is told to stop. Exit statuses: 0 stopped as
 * asked, 1 failed (the log says why; with --check-config, that something is wrong), 2 wrong usage.
 */

#define CONFIG_PATH "/etc/profd/profd.conf"

enum { STATUS_FAILED = 1, STATUS_USAGE = 2 };

typedef struct Arguments {
    const char *store, *config; /* config NULL: CONFIG_PATH, which may be missing */
    bool check_config, print_config_keys, help, version;
} Arguments;

/* An option's handler: NULL, or what would have been right. */
typedef const char *(*Handler)(Arguments *arguments, const char *value);

static const char *set_store(Arguments *arguments, const char *value) {
    arguments->store = value;
    return *value ? NULL : "a folder";
}

static const char *set_config(Arguments *arguments, const char *value) {
    arguments->config = value;
    return *value ? NULL : "a file";
}

static const char *set_check_config(Arguments *arguments, const char *value _unused_) {
    arguments->check_config = true;
    return NULL;
}

static const char *set_print_config_keys(Arguments *arguments, const char *value _unused_) {
    arguments->print_config_keys = true;
    return NULL;
}

static const char *set_log_level(Arguments *arguments _unused_, const char *value) {
    LogLevel level;

    if (log_level_from_name(value, &level) < 0)
        return "err, warning, notice, info or debug";
    log_set_level(level);
    return NULL;
}

static const char *set_help(Arguments *arguments, const char *value _unused_) {
    arguments->help = true;
    return NULL;
}

static const char *set_version(Arguments *arguments, const char *value _unused_) {
    arguments->version = true;
    return NULL;
}

/* clang-format off */
static const struct OptionRow {
    const char *name;
    const char *value; /* NULL: takes none */
    const char *help;  /* NULL: not shown */
    Handler     handle;
} options[] = {
    { "config",            "FILE",  "configuration (default: " CONFIG_PATH ")",                set_config            },
    { "store",             "DIR",   "where recordings go (default: /var/lib/profd)",           set_store             },
    { "check-config",      NULL,    "check the configuration and exit",                        set_check_config      },
    { "log-level",         "LEVEL", "err, warning, notice, info or debug (default: info)",     set_log_level         },
    { "print-config-keys", NULL,    NULL,                                                      set_print_config_keys },
    { "help",              NULL,    "show this help",                                          set_help              },
    { "version",           NULL,    "show the version",                                        set_version           },
};
/* clang-format on */

static void print_help(void) {
    printf("Usage: profd [OPTION...]\n\n"
           "Record what every CPU of this machine does, all the time, as perf.data.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        char left[32];

        if (!options[i].help)
            continue;
        snprintf(left, sizeof(left), "--%s%s%s", options[i].name, options[i].value ? "=" : "",
                 options[i].value ? options[i].value : "");
        printf("  %-20s %s\n", left, options[i].help);
    }
    printf("\nStops on SIGTERM or SIGINT. See profd(8).\n");
}

static int parse_arguments(Arguments *arguments, int argc, char **argv) {
    struct option longs[ARRAY_SIZE(options) + 1] = {};
    int index;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        longs[i] = (struct option){.name = options[i].name,
                                   .has_arg = options[i].value ? required_argument : no_argument};
    for (int c; (c = getopt_long(argc, argv, "", longs, &index)) != -1;) {
        const char *expected;

        if (c != 0)
            return -EINVAL;
        expected = options[index].handle(arguments, optarg);
        if (expected) {
            fprintf(stderr, "profd: --%s takes %s, not '%s'\n", options[index].name, expected,
                    optarg);
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "profd: takes no argument '%s', see profd --help\n", argv[optind]);
        return -EINVAL;
    }
    return 0;
}

/* For the lint that holds profd.conf and its page against the table. */
static void print_config_keys(void) {
    size_t n;
    const ConfigKey *keys = config_keys(&n);

    for (size_t i = 0; i < n; i++)
        printf("%s\t%s\t%s\t%s\n", keys[i].section, keys[i].name, keys[i].fallback,
               keys[i].expected);
}

static void on_problem(void *userdata _unused_, const char *path, unsigned line,
                       const char *problem) {
    log_warning(0, "%s:%u: %s", path, line, problem);
}

/* A typo must not take the recorder away: what is wrong is warned of, and its default holds. */
static int load_config(const Arguments *arguments, Config *ret) {
    const char *path = arguments->config ? arguments->config : CONFIG_PATH;
    int r;

    config_set_defaults(ret);
    r = config_load(ret, path, on_problem, NULL);
    if (r == -ENOENT && !arguments->config)
        return 0;
    return r < 0 ? log_error(r, "Failed to read configuration '%s': %m", path) : r;
}

static int run(const Arguments *arguments, char **argv) {
    _cleanup_(daemon_freep) Daemon *daemon = NULL;
    Config config;
    int r = load_config(arguments, &config);

    if (arguments->check_config || r < 0)
        return r == 0 ? EXIT_SUCCESS : STATUS_FAILED;
    r = daemon_new(&(DaemonOptions){.store = arguments->store, .config = &config, .argv = argv},
                   &daemon);
    if (r == 0) {
        (void)sd_notify(false, "READY=1");
        r = daemon_run(daemon);
    }
    return r < 0 ? STATUS_FAILED : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    Arguments arguments = {.store = "/var/lib/profd"};

    if (parse_arguments(&arguments, argc, argv) < 0)
        return STATUS_USAGE;
    if (arguments.help)
        print_help();
    if (arguments.version)
        printf("profd %s\n", PROFD_VERSION);
    if (arguments.print_config_keys)
        print_config_keys();
    if (arguments.help || arguments.version || arguments.print_config_keys)
        return EXIT_SUCCESS;
    signal(SIGPIPE, SIG_IGN);
    return run(&arguments, argv);
}
