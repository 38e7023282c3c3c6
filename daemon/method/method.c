/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "method/method-private.h"

#include <errno.h>

#include "protocol/value.h"
#include "util/log.h"
#include "util/near.h"

/*
 * The table of methods: who may call one, how, and whether it changes something, which the control
 * tells in the log. It is held against the interface when the socket is taken.
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
    { "RemoveSnapshot", RIGHT_READ,   METHOD_PLAIN,    true,  method_remove_snapshot },
    { "PinSnapshot",    RIGHT_READ,   METHOD_PLAIN,    true,  method_pin_snapshot    },
    { "Read",           RIGHT_READ,   METHOD_UPGRADE,  false, method_read            },
    { "Vacuum",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_vacuum          },
    { "Monitor",        RIGHT_READ,   METHOD_MORE,     false, method_monitor         },
    { "GetMetrics",     RIGHT_READ,   METHOD_MAY_MORE, false, method_get_metrics     },
    { "Describe",       RIGHT_READ,   METHOD_MORE,     false, method_describe        },
    { "Reload",         RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_reload          },
    { "SetLogLevel",    RIGHT_ADMIN,  METHOD_PLAIN,    true,  method_set_log_level   },
};
/* clang-format on */

int method_fail_no_session(const Daemon *daemon, Call *call, const char *error, const char *name) {
    json_t *list = json_array(), *parameters = json_pack("{s:o}", "session", answer_echo(name));
    NearNames near = {};

    for (size_t i = 0; i < roster_count(daemon->roster); i++) {
        const char *other = roster_at(daemon->roster, i)->config.name;

        near_offer(&near, other, near_distance(name, other));
    }
    for (size_t i = 0; i < near.n; i++)
        value_append(&list, answer_text(near.names[i].name));
    if (near.n > 0)
        value_set(&parameters, "near", list);
    else
        json_decref(list);
    return call_fail(call, error, parameters);
}

Member *method_member(Daemon *daemon, Call *call) {
    const char *name = "";
    Member *member;

    (void)ask_text(call, "session", &name);
    member = roster_find(daemon->roster, name);
    if (!member)
        (void)method_fail_no_session(daemon, call, "NoSuchSession", name);
    return member;
}

int method_fail_not_active(Call *call, const Member *member) {
    return call_fail(call, "SessionNotActive",
                     json_pack("{s:s, s:s}", "session", member->config.name, "state",
                               member_state_name(member->state)));
}

static void on_connection_gone(void *userdata, uint64_t connection) {
    method_forget_connection(userdata, connection);
}

int daemon_listen(Daemon *daemon) {
    ControlOptions options = {.loop = daemon->loop,
                              .methods = methods,
                              .n_methods = ARRAY_SIZE(methods),
                              .groups = groups_find(),
                              .version = PROFD_VERSION,
                              .on_connection_gone = on_connection_gone,
                              .userdata = daemon};
    int r = keeper_listen(daemon->options.keeper, &options.fd);

    /* Recording goes on without it. */
    if (r < 0 && r != -ENOENT)
        log_warning(r, "Failed to get the control socket, so profctl cannot be served: %m");
    return r < 0 ? 0 : control_new(&options, &daemon->control);
}
