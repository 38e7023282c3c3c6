/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "util/clock.h"

/* `profctl reload`: the daemon reads its configuration again and applies all of it or nothing. */

enum { RELOAD_TIMEOUT_S = 120 };

static int reload_run(Context *c, void *settings, char **arguments) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    int r = remote_open(c, &remote);

    if (r != STATUS_OK)
        return r;
    remote_set_timeout(remote, RELOAD_TIMEOUT_S * NS_PER_SECOND);
    r = remote_call(remote, "Reload", json_object(), NULL);
    if (r != STATUS_OK)
        return r;
    if (!c->json)
        remark(c, "The configuration was loaded.");
    return reply_print_done(c, STATUS_OK, json_pack("{s:b}", "reloaded", 1));
}

const Command command_reload = {
    .name = "reload",
    .arguments = "",
    .summary = "Load the configuration of the daemon again",
    .notes = "If the configuration has a mistake, nothing changes. Each mistake is printed with "
             "its\nfile and line.",
    .run = reload_run,
};
