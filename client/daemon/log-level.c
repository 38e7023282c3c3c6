/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/* `profctl log-level`: sets how much the daemon logs until profd is stopped; prints the previous
 * level. */

static int log_level_print(Context *c, const char *level, const json_t *reply) {
    const char *previous = reply_string(reply, "previous");

    if (!c->json) {
        text_printf(&c->out.buffer, "%s\n", previous);
        remark(c, "profd logs at level '%s' now, until it is stopped.", level);
        return STATUS_OK;
    }
    return reply_print_done(
        c, STATUS_OK,
        json_pack("{s:o, s:o}", "level", remote_word(level), "previous", remote_word(previous)));
}

static bool log_level_is(const char *word) {
    static const char *const levels[] = {"err", "warning", "notice", "info", "debug"};

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i], word) == 0)
            return true;
    return false;
}

static int log_level_run(Context *c, void *settings, char **arguments) {
    _cleanup_json_ json_t *reply = NULL;
    int r;

    if (!log_level_is(arguments[0]))
        return complain(
            STATUS_USAGE,
            "There is no log level '%s'; the levels are err, warning, notice, info and debug.",
            arguments[0]);
    r = remote_ask(c, "SetLogLevel", json_pack("{s:o}", "level", remote_word(arguments[0])),
                   &reply);
    return r == STATUS_OK ? log_level_print(c, arguments[0], reply) : r;
}

const Command command_log_level = {
    .name = "log-level",
    .arguments = "err|warning|notice|info|debug",
    .n_min = 1,
    .n_max = 1,
    .summary = "Set how much the daemon logs, and print the level before",
    .run = log_level_run,
};
