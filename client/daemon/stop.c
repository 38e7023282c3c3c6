/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl stop`, `pause` and `resume`: one call for each session named. One that cannot be is no
 * reason to leave out the others; the status is that of the first that failed.
 */

typedef struct Order {
    const char *method;
    const char *state; /* of the session when it is done */
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
    text_putc(&text, '\0');
    if (!c->quiet && !buffer_error(&text))
        (void)complain_shown(STATUS_OK, (const char *)text.data);
}

static int stop_call(Context *c, Remote *remote, const Order *order, const char *session,
                     json_t **results) {
    json_t *reply = NULL, *result;
    int r = remote_call(remote, order->method, json_pack("{s:o}", "session", remote_word(session)),
                        &reply);

    if (r != STATUS_OK)
        return r;
    result = json_object_get(reply, "session");
    if (result)
        json_incref(result);
    else
        result = json_pack("{s:o, s:o}", "name", remote_word(session), "state",
                           remote_word(order->state));
    if (c->json)
        value_append(results, json_incref(result));
    else if (strcmp(order->method, "Stop") == 0)
        stop_report_stopped(c, result);
    else
        remark(c, "Session '%s' is %s.", session, order->state);
    json_decref(result);
    json_decref(reply);
    return r;
}

static int stop_run_order(Context *c, const Order *order, char **sessions) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    json_t *results = NULL;
    int status = remote_open(c, &remote);

    if (status != STATUS_OK)
        return status;
    results = json_array();
    for (; *sessions; sessions++) {
        int r = stop_call(c, remote, order, *sessions, &results);

        status = status == STATUS_OK ? r : status;
        if (r == STATUS_NOT_RUNNING || r == STATUS_TIMED_OUT)
            break;
    }
    if (c->json) {
        int r = reply_print(c, results);

        status = status == STATUS_OK ? r : status;
    }
    json_decref(results);
    return status;
}

static int stop_run(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, &(Order){"Stop", "inactive"}, arguments);
}

static int stop_run_pause(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, &(Order){"Pause", "paused"}, arguments);
}

static int stop_run_resume(Context *c, void *settings, char **arguments) {
    return stop_run_order(c, &(Order){"Resume", "active"}, arguments);
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
