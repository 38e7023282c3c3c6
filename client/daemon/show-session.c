/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl show-session`: prints everything that the daemon knows about a session: its state, and
 * each of its settings with the origin of the value.
 */

static void show_settings(Context *c, const Screen *s, const json_t *settings) {
    const json_t *setting;
    size_t i;

    json_array_foreach(settings, i, setting) {
        const char *source = reply_string(setting, "source");

        screen_printf(s, i == 0 ? "Settings" : NULL, "%s=%s%s%s%s", reply_string(setting, "key"),
                      reply_string(setting, "value"), c->no_legend ? "" : "  (",
                      c->no_legend ? "" : source, c->no_legend ? "" : ")");
    }
}

/* Combines both replies about a session into one object. */
static int show_session_ask(Remote *remote, const char *name, json_t **ret) {
    json_t *session = NULL, *settings = NULL;
    int r;

    r = remote_list(remote, "ListSessions", json_pack("{s:o}", "session", remote_word(name)),
                    "session", &session);
    if (r == STATUS_OK)
        r = remote_list(remote, "Describe", json_pack("{s:o}", "session", remote_word(name)),
                        "setting", &settings);
    if (r == STATUS_OK)
        *ret =
            json_pack("{s:O?, s:O}", "session", json_array_get(session, 0), "settings", settings);
    json_decref(session);
    json_decref(settings);
    return r;
}

static int show_session_run(Context *c, void *settings, char **arguments) {
    static char by_default[] = "default", *names[] = {by_default, NULL};
    _cleanup_(remote_freep) Remote *remote = NULL;
    char **sessions = *arguments ? arguments : names;
    json_t *all = json_array(), *one = NULL;
    int status = remote_open(c, &remote);
    Screen s = screen_of(c);

    for (size_t i = 0; sessions[i] && (status == STATUS_OK || status == STATUS_NOT_FOUND); i++) {
        int r = show_session_ask(remote, sessions[i], &one);

        status = status == STATUS_OK ? r : status;
        if (r != STATUS_OK)
            continue;
        if (!c->json) {
            context_page(c);
            text_puts(&c->out.buffer, json_array_size(all) > 0 ? "\n" : "");
            session_show(&s, reply_member(one, "session"), true, figure_now_us());
            show_settings(c, &s, reply_member(one, "settings"));
        }
        value_append(&all, one);
    }
    if (c->json && json_array_size(all) > 0)
        (void)reply_print(c, all);
    json_decref(all);
    return status;
}

const Command command_show_session = {
    .name = "show-session",
    .arguments = "[SESSION…]",
    .n_max = UINT32_MAX,
    .summary = "Show sessions in full, with their settings",
    .notes = "Shows the session 'default' when none is named.",
    .run = show_session_run,
};
