/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "method/method.h"

#include "method/method-private.h"

/*
 * The table of methods: which right a method needs, how it is called, and whether it changes
 * something and is logged. The control compares the table with the interface at start.
 */

/* clang-format off */
static const ControlMethod methods[] = {
    { "Ping",           RIGHT_ANYONE, METHOD_PLAIN,    false, method_ping            },
    { "GetStatus",      RIGHT_ANYONE, METHOD_PLAIN,    false, method_get_status      },
    { "ListSessions",   RIGHT_READ,   METHOD_MORE,     false, method_list_sessions   },
    { "Start",          RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_start           },
    { "Stop",           RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_stop            },
    { "Pause",          RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_pause           },
    { "Resume",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_resume          },
    { "Rotate",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_rotate          },
    { "Snapshot",       RIGHT_READ,   METHOD_MAY_MORE, true,  method_snapshot        },
    { "ListSegments",   RIGHT_READ,   METHOD_MORE,     false, method_list_segments   },
    { "ListSnapshots",  RIGHT_READ,   METHOD_MORE,     false, method_list_snapshots  },
    { "ListBinaries",   RIGHT_READ,   METHOD_MORE,     false, method_list_binaries   },
    { "RemoveSnapshot", RIGHT_READ,   METHOD_PLAIN,    true,  method_remove_snapshot },
    { "PinSnapshot",    RIGHT_READ,   METHOD_PLAIN,    true,  method_pin_snapshot    },
    { "Read",           RIGHT_READ,   METHOD_UPGRADE,  false, method_read            },
    { "Follow",         RIGHT_READ,   METHOD_UPGRADE,  false, method_follow          },
    { "Vacuum",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_vacuum          },
    { "Monitor",        RIGHT_READ,   METHOD_MORE,     false, method_monitor         },
    { "GetMetrics",     RIGHT_READ,   METHOD_MAY_MORE, false, method_get_metrics     },
    { "Describe",       RIGHT_READ,   METHOD_MORE,     false, method_describe        },
    { "Reload",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_reload          },
    { "SetLogLevel",    RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_set_log_level   },
};
/* clang-format on */

static void method_on_connection_gone(void *userdata, uint64_t connection) {
    method_forget_connection(userdata, connection);
}

const DaemonMethods daemon_methods = {
    .rows = methods,
    .n = ARRAY_SIZE(methods),
    .on_connection_gone = method_on_connection_gone,
    .on_vacuumed = method_vacuum_ended,
    .forget = method_forget_connections,
};
