/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/profd-option.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/parse.h"

/* One table of options: a row has the name, the argument, the help text and the handler. */

/* Returns NULL, or a description of valid values. */
typedef const char *(*Handler)(Options *options, const char *value);

static const char *profd_option_set_store(Options *options, const char *value) {
    options->store = value;
    options->has_store = true;
    return *value ? NULL : "a folder";
}

static const char *profd_option_set_runtime(Options *options, const char *value) {
    options->runtime = value;
    options->has_runtime = true;
    return *value ? NULL : "a folder";
}

static const char *profd_option_set_config(Options *options, const char *value) {
    options->config = value;
    return *value ? NULL : "a file";
}

static const char *profd_option_set_check_config(Options *options, const char *value _unused_) {
    options->check_config = true;
    return NULL;
}

static const char *profd_option_set_print_config_keys(Options *options,
                                                      const char *value _unused_) {
    options->print_config_keys = true;
    return NULL;
}

static const char *profd_option_set_print_events(Options *options, const char *value _unused_) {
    options->print_events = true;
    return NULL;
}

static const char *profd_option_set_print_options(Options *options, const char *value _unused_) {
    options->print_options = true;
    return NULL;
}

static const char *profd_option_set_recorder(Options *options, const char *value) {
    uint64_t fd;

    if (parse_u64(value, &fd) < 0 || fd > INT_MAX)
        return "a descriptor";
    options->recorder = (int)fd;
    return NULL;
}

static const char *profd_option_set_log_level(Options *options _unused_, const char *value) {
    LogLevel level;

    if (log_level_from_name(value, &level) < 0)
        return "err, warning, notice, info or debug";
    log_set_level(level);
    return NULL;
}

static const char *profd_option_set_help(Options *options, const char *value _unused_) {
    options->help = true;
    return NULL;
}

static const char *profd_option_set_version(Options *options, const char *value _unused_) {
    options->version = true;
    return NULL;
}

/* clang-format off */
static const struct OptionRow {
    const char *name;
    const char *value; /* NULL: no argument */
    const char *help;  /* NULL: hidden */
    Handler     handle;
} rows[] = {
    { "config",            "FILE",  "configuration (default: " PROFD_SYSCONFDIR "/profd/profd.conf)", profd_option_set_config            },
    { "store",             "DIR",   "where recordings go (default: /var/lib/profd)",           profd_option_set_store             },
    { "runtime",           "DIR",   "where the control socket goes (default: /run/profd)",         profd_option_set_runtime           },
    { "check-config",      NULL,    "check the configuration and exit",                        profd_option_set_check_config      },
    { "log-level",         "LEVEL", "err, warning, notice, info or debug (default: info)",     profd_option_set_log_level         },
    { "print-config-keys", NULL,    NULL,                                                      profd_option_set_print_config_keys },
    { "print-events",      NULL,    NULL,                                                      profd_option_set_print_events      },
    { "print-options",     NULL,    NULL,                                                      profd_option_set_print_options     },
    { "recorder",          "FD",    NULL,                                                      profd_option_set_recorder          },
    { "help",              NULL,    "show this help",                                          profd_option_set_help              },
    { "version",           NULL,    "show the version",                                        profd_option_set_version           },
};
/* clang-format on */

void option_print_help(void) {
    printf("Usage: profd [OPTION...]\n\n"
           "Record what every CPU of this machine does, all the time, as perf.data.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char left[32];

        if (!rows[i].help)
            continue;
        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].value ? "=" : "",
                 rows[i].value ? rows[i].value : "");
        printf("  %-20s %s\n", left, rows[i].help);
    }
    printf(
        "\nStops on SIGTERM or SIGINT, reads its configuration again on SIGHUP. See profd(8).\n");
}

void option_print_table(void) {
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].help)
            printf("*\t\t--%s\t%s\t%s\n", rows[i].name, rows[i].value ? rows[i].value : "",
                   rows[i].help);
}

int option_parse(Options *ret, int argc, char **argv) {
    Options options = {.store = "/var/lib/profd", .runtime = "/run/profd", .recorder = -1};
    struct option longs[ARRAY_SIZE(rows) + 1] = {};
    int index;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        longs[i] = (struct option){.name = rows[i].name,
                                   .has_arg = rows[i].value ? required_argument : no_argument};
    for (int c; (c = getopt_long(argc, argv, "", longs, &index)) != -1;) {
        const char *expected;

        if (c != 0)
            return -EINVAL;
        expected = rows[index].handle(&options, optarg);
        if (expected) {
            fprintf(stderr, "profd: --%s takes %s, not '%s'\n", rows[index].name, expected, optarg);
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "profd: takes no argument '%s', see profd --help\n", argv[optind]);
        return -EINVAL;
    }
    *ret = options;
    return 0;
}
