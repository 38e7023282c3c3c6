/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "util/clock.h"
#include "util/text.h"

/* `profctl ping`: prints whether the daemon answers, and how long that takes. */

#define PING_TIMEOUT_NS (5 * NS_PER_SECOND)

static int ping_run(Context *c, void *settings, char **arguments) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    uint64_t began = clock_monotonic_ns(), us;
    int r = remote_open(c, &remote);

    if (r != STATUS_OK)
        return r;
    remote_set_timeout(remote, PING_TIMEOUT_NS);
    r = remote_call(remote, "Ping", json_object(), NULL);
    us = (clock_monotonic_ns() - began) / 1000;
    if (r != STATUS_OK)
        return r;
    if (c->json)
        return reply_print_done(c, r, json_pack("{s:I}", "roundTripUsec", (json_int_t)us));
    text_puts(&c->out.buffer, "profd answers in ");
    figure_span(&c->out.buffer, us);
    text_puts(&c->out.buffer, ".\n");
    return r;
}

const Command command_ping = {
    .name = "ping",
    .arguments = "",
    .summary = "Check that the daemon answers",
    .run = ping_run,
};
