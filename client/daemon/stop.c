/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/* `profctl stop`, `pause` and `resume`: one call for each session named, and what becomes of it. */

typedef struct Order {
    const char *method;
    const char *state; /* the state of the session afterwards */
} Order;

static void stop_report_stopped(const Context *c, const json_t *session) {
    _cleanup_(buffer_done) Buffer text = {};
    uint64_t segments = reply_count(session, "segments");

    text_printf(&text, "Session '%s' stopped: ", reply_string(session, "name"));
    figure_count(&text, reply_count(session, "samples"));
    text_puts(&text, reply_count(session, "samples") == 1 ? " sample, " : " samples, ");
    if (reply_count(session, "lost") > 0)
        figure_count(&text, reply_count(session, "lost"));
    text_puts(&text, reply_count(session, "lost") > 0 ? " lost, " : "none lost, ");
    figure_size(&text, reply_count(session, "storedBytes"));
    text_printf(&text, " in %" PRIu64 " segment%s.", segments, segments == 1 ? "" : "s");
    if (!c->quiet)
        remark_buffer(&text);
    if (reply_has(session, "error"))
        remark(c, "%s.", reply_string(session, "error"));
}

static int stop_call(Context *c, Remote *remote, const char *session, void *userdata,
                     json_t **done) {
    const Order *order = userdata;
    _cleanup_json_ json_t *reply = NULL, *result = NULL;
    int r = remote_call(remote, order->method, json_pack("{s:o}", "session", remote_word(session)),
                        &reply);

    if (r != STATUS_OK)
        return r;
    result = json_incref(json_object_get(reply, "session"));
    if (!result)
        result = json_pack("{s:o, s:o}", "name", remote_word(session), "state",
                           remote_word(order->state));
    if (c->json)
        value_append(done, json_incref(result));
    else if (strcmp(order->method, "Stop") == 0)
        stop_report_stopped(c, result);
    else
        remark(c, "Session '%s' is %s.", session, order->state);
    return r;
}

static int stop_run_order(Context *c, Order order, char **sessions) {
    json_t *done;
    int status = remote_for_each(c, sessions, stop_call, &order, &done);

    return reply_print_done(c, status, done);
}

static int stop_run(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, (Order){"Stop", "inactive"}, arguments);
}

static int stop_run_pause(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, (Order){"Pause", "paused"}, arguments);
}

static int stop_run_resume(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, (Order){"Resume", "active"}, arguments);
}

const Command command_stop = {
    .name = "stop",
    .arguments = "SESSION…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Stop sessions; what they recorded stays",
    .run = stop_run,
};

const Command command_pause = {
    .name = "pause",
    .arguments = "SESSION…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Pause sessions: they take no samples until they are resumed",
    .run = stop_run_pause,
};

const Command command_resume = {
    .name = "resume",
    .arguments = "SESSION…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Resume paused sessions",
    .run = stop_run_resume,
};
