/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/profd-option.h"

#include "util/macro.h"

/* One table of options: a row has the name, the argument, the help text and the parser. */

/* clang-format off */
static const ProgramOption rows[] = {
    { "config",            "FILE",  "configuration (default: " PROFD_SYSCONFDIR "/profd/profd.conf)", program_option_text, offsetof(Options, config), "a file" },
    { "store",             "DIR",   "where recordings go (default: /var/lib/profd)",       program_option_text,       offsetof(Options, store), "a folder"            },
    { "runtime",           "DIR",   "where the control socket goes (default: /run/profd)", program_option_text,       offsetof(Options, runtime), "a folder"          },
    { "check-config",      NULL,    "check the configuration and exit",                    program_option_flag,       offsetof(Options, check_config), NULL           },
    { "log-level",         "LEVEL", "err, warning, notice, info or debug (default: info)", program_option_log_level,  0, "err, warning, notice, info or debug"        },
    { "print-config-keys", NULL,    NULL,                                                  program_option_flag,       offsetof(Options, print_config_keys), NULL      },
    { "print-events",      NULL,    NULL,                                                  program_option_flag,       offsetof(Options, print_events), NULL           },
    { "print-options",     NULL,    NULL,                                                  program_option_flag,       offsetof(Options, print_options), NULL          },
    { "recorder",          "FD",    NULL,                                                  program_option_descriptor, offsetof(Options, recorder), "a descriptor"     },
    { "help",              NULL,    "show this help",                                      program_option_flag,       offsetof(Options, help), NULL                   },
    { "version",           NULL,    "show the version",                                    program_option_flag,       offsetof(Options, version), NULL                },
};
/* clang-format on */

const ProgramOptions profd_options = {
    .program = "profd",
    .purpose = "Record what every CPU of this machine does, all the time, as perf.data.",
    .rows = rows,
    .n = ARRAY_SIZE(rows),
};
