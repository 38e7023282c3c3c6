/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-option.h"

#include "util/macro.h"

/* One table of options: a row has the name, the argument, the help text and the parser. */

/* clang-format off */
static const ProgramOption rows[] = {
    { "config",            "FILE",  "configuration (default: " PROFD_SYSCONFDIR "/profd/gateway.conf)", program_option_text, offsetof(GatewayOptions, config), "a file"          },
    { "state",             "DIR",   "where positions are kept (default: /var/lib/profd-gateway)",     program_option_text, offsetof(GatewayOptions, state), "a folder"           },
    { "runtime",           "DIR",   "where socket and status go (default: /run/profd-gateway)",       program_option_text, offsetof(GatewayOptions, runtime), "a folder"         },
    { "check-config",      NULL,    "check the configuration and exit",                               program_option_flag, offsetof(GatewayOptions, check_config), NULL          },
    { "test",              "NAME",  "send a small profile to [Send NAME], ask for it back, and exit", program_option_text, offsetof(GatewayOptions, test), "the name of a destination" },
    { "log-level",         "LEVEL", "err, warning, notice, info or debug (default: info)",            program_option_log_level, 0, "err, warning, notice, info or debug"          },
    { "print-config-keys", NULL,    NULL,                                                             program_option_flag, offsetof(GatewayOptions, print_config_keys), NULL     },
    { "print-options",     NULL,    NULL,                                                             program_option_flag, offsetof(GatewayOptions, print_options), NULL         },
    { "help",              NULL,    "show this help",                                                 program_option_flag, offsetof(GatewayOptions, help), NULL                  },
    { "version",           NULL,    "show the version",                                               program_option_flag, offsetof(GatewayOptions, version), NULL               },
};
/* clang-format on */

const ProgramOptions gateway_options = {
    .program = "profd-gateway",
    .purpose = "Send what profd records to profiling engines, and serve it over HTTP.",
    .rows = rows,
    .n = ARRAY_SIZE(rows),
};
