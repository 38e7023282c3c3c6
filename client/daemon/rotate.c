/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/* `profctl rotate`: ends open segments, so that they become complete files, and prints their
 * paths. */

static int rotate(Context *c, Remote *remote, const char *session, void *userdata,
                  json_t **segments) {
    _cleanup_json_ json_t *reply = NULL;
    json_t *parameters = json_object(), *path;
    size_t i;
    int r;

    if (session)
        value_set(&parameters, "session", remote_word(session));
    r = remote_call(remote, "Rotate", parameters, &reply);
    json_array_foreach(reply_member(reply, "segments"), i, path)
        value_append(segments, json_incref(path));
    return r;
}

static int rotate_run(Context *c, void *settings, char **arguments) {
    json_t *segments;
    const json_t *path;
    size_t i;
    int status = remote_for_each(c, arguments, rotate, NULL, &segments);

    if (c->json && segments)
        return reply_print_done(c, status, json_pack("{s:o}", "segments", segments));
    json_array_foreach(segments, i, path) if (json_is_string(path))
        text_printf(&c->out.buffer, "%s\n", json_string_value(path));
    json_decref(segments);
    return status;
}

const Command command_rotate = {
    .name = "rotate",
    .arguments = "[SESSION…]",
    .n_max = UINT32_MAX,
    .summary = "End the open segments, of all sessions or some, and begin new ones",
    .notes = "Prints the paths of the segments that were ended.",
    .run = rotate_run,
};
