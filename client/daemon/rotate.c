/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/* `profctl rotate`: ends open segments, so that they are whole files; prints where they are. */

static int rotate(Remote *remote, const char *session, json_t **all) {
    json_t *parameters = json_object(), *reply, *path;
    size_t i;
    int r;

    if (session)
        value_set(&parameters, "session", remote_word(session));
    r = remote_call(remote, "Rotate", parameters, &reply);
    if (r != STATUS_OK)
        return r;
    json_array_foreach(reply_member(reply, "segments"), i, path)
        value_append(all, json_incref(path));
    json_decref(reply);
    return r;
}

static int rotate_print(Context *c, json_t *all) {
    const json_t *path;
    json_t *answer;
    size_t i;
    int r;

    if (c->json) {
        answer = json_pack("{s:O}", "segments", all);
        r = reply_print(c, answer);
        json_decref(answer);
        return r;
    }
    json_array_foreach(all, i, path) if (json_is_string(path))
        text_printf(&c->out.buffer, "%s\n", json_string_value(path));
    return STATUS_OK;
}

static int rotate_run(Context *c, void *settings, char **arguments) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    json_t *all = NULL;
    int status = remote_open(c, &remote), r;

    if (status != STATUS_OK)
        return status;
    all = json_array();
    do {
        r = rotate(remote, *arguments, &all);
        status = status == STATUS_OK ? r : status;
    } while (*arguments && *++arguments && r != STATUS_NOT_RUNNING && r != STATUS_TIMED_OUT);
    r = rotate_print(c, all);
    json_decref(all);
    return status == STATUS_OK ? r : status;
}

const Command command_rotate = {
    .name = "rotate",
    .arguments = "[SESSION…]",
    .n_max = UINT32_MAX,
    .summary = "End the open segments, of all sessions or some, and begin new ones",
    .notes = "Prints the paths of the segments that were ended.",
    .run = rotate_run,
};
