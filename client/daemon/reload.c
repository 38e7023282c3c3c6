/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote.h"
#include "client/remote/reply.h"

/* `profctl reload`: the daemon reads its configuration anew, all of it or nothing. */

enum { RELOAD_TIMEOUT_S = 120 };

static int reload_run(Context *c, void *settings, char **arguments) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    json_t *answer;
    int r = remote_open(c, &remote);

    if (r != STATUS_OK)
        return r;
    remote_set_timeout(remote, RELOAD_TIMEOUT_S * 1000000000ULL);
    r = remote_call(remote, "Reload", json_object(), NULL);
    if (r != STATUS_OK)
        return r;
    if (c->json) {
        answer = json_pack("{s:b}", "reloaded", 1);
        r = reply_print(c, answer);
        json_decref(answer);
    } else
        remark(c, "The configuration was loaded.");
    return r;
}

const Command command_reload = {
    .name = "reload",
    .arguments = "",
    .summary = "Read the configuration of the daemon anew",
    .notes = "One mistake in it, and nothing changes; each is printed with its file and line.",
    .run = reload_run,
};
