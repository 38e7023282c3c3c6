/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-option.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "util/log.h"
#include "util/macro.h"

/* One table of options: a row has the name, the argument, the help text and the handler. */

/* Returns NULL, or a description of valid values. */
typedef const char *(*Handler)(GatewayOptions *options, const char *value);

#define TEXT_OPTION(name, expected)                                                                \
    static const char *gateway_option_set_##name(GatewayOptions *options, const char *value) {     \
        options->name = value;                                                                     \
        return *value ? NULL : (expected);                                                         \
    }
#define FLAG_OPTION(name)                                                                          \
    static const char *gateway_option_set_##name(GatewayOptions *options,                          \
                                                 const char *value _unused_) {                     \
        options->name = true;                                                                      \
        return NULL;                                                                               \
    }

TEXT_OPTION(config, "a file")
TEXT_OPTION(state, "a folder")
TEXT_OPTION(runtime, "a folder")
TEXT_OPTION(test, "the name of a destination")
FLAG_OPTION(check_config)
FLAG_OPTION(print_config_keys)
FLAG_OPTION(print_options)
FLAG_OPTION(help)
FLAG_OPTION(version)

static const char *gateway_option_set_log_level(GatewayOptions *options _unused_,
                                                const char *value) {
    LogLevel level;

    if (log_level_from_name(value, &level) < 0)
        return "err, warning, notice, info or debug";
    log_set_level(level);
    return NULL;
}

/* clang-format off */
static const struct OptionRow {
    const char *name;
    const char *value; /* NULL: no argument */
    const char *help;  /* NULL: hidden */
    Handler     handle;
} rows[] = {
    { "config",            "FILE",  "configuration (default: " PROFD_SYSCONFDIR "/profd/gateway.conf)",  gateway_option_set_config            },
    { "state",             "DIR",   "where positions are kept (default: /var/lib/profd-gateway)",        gateway_option_set_state             },
    { "runtime",           "DIR",   "where socket and status go (default: /run/profd-gateway)",          gateway_option_set_runtime           },
    { "check-config",      NULL,    "check the configuration and exit",                                  gateway_option_set_check_config      },
    { "test",              "NAME",  "send a small profile to [Send NAME], ask for it back, and exit",    gateway_option_set_test              },
    { "log-level",         "LEVEL", "err, warning, notice, info or debug (default: info)",               gateway_option_set_log_level         },
    { "print-config-keys", NULL,    NULL,                                                                gateway_option_set_print_config_keys },
    { "print-options",     NULL,    NULL,                                                                gateway_option_set_print_options     },
    { "help",              NULL,    "show this help",                                                    gateway_option_set_help              },
    { "version",           NULL,    "show the version",                                                  gateway_option_set_version           },
};
/* clang-format on */

void gateway_option_print_help(void) {
    printf("Usage: profd-gateway [OPTION...]\n\n"
           "Send what profd records to profiling engines, and serve it over HTTP.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char left[32];

        if (!rows[i].help)
            continue;
        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].value ? "=" : "",
                 rows[i].value ? rows[i].value : "");
        printf("  %-20s %s\n", left, rows[i].help);
    }
    printf("\nStops on SIGTERM or SIGINT, reads its configuration again on SIGHUP. See "
           "profd-gateway(8).\n");
}

void gateway_option_print_table(void) {
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].help)
            printf("*\t\t--%s\t%s\t%s\n", rows[i].name, rows[i].value ? rows[i].value : "",
                   rows[i].help);
}

int gateway_option_parse(GatewayOptions *ret, int argc, char **argv) {
    GatewayOptions options = {.state = "/var/lib/profd-gateway", .runtime = "/run/profd-gateway"};
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
            fprintf(stderr, "profd-gateway: --%s takes %s, not '%s'\n", rows[index].name, expected,
                    optarg);
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "profd-gateway: takes no argument '%s', see profd-gateway --help\n",
                argv[optind]);
        return -EINVAL;
    }
    *ret = options;
    return 0;
}
