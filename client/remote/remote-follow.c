/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote-follow.h"

#include <errno.h>
#include <string.h>

#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"

/*
 * lib/follow reads the stream and knows no command. The first call is made like every other call of
 * a command, so that it fails with the same sentences and statuses. A later one is made in the
 * background of a screen, where a sentence has no place.
 */

int remote_follow(const Context *c, const FollowOptions *options, bool may_be_absent,
                  Follow **ret) {
    _cleanup_(follow_freep) Follow *follow = NULL;
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_json_ json_t *reply = NULL;
    int r = follow_new(options, &follow), status;

    if (r < 0)
        return complain(STATUS_FAILED, "Failed to ask profd: %s.", strerror(-r));
    status = remote_open(c, &remote);
    if (status == STATUS_OK && may_be_absent)
        remote_expect(remote, "WindowUnavailable");
    if (status == STATUS_OK)
        status = remote_upgrade(remote, "Follow", follow_parameters(follow), &reply);
    if (status != STATUS_OK)
        return status;
    r = remote_take_fd(remote, FOLLOW_SILENCE_S);
    if (r >= 0)
        r = follow_begin(follow, r, reply_string(reply, "bootId"));
    if (r < 0)
        return complain(r == -ETIMEDOUT ? STATUS_TIMED_OUT : STATUS_FAILED,
                        "Failed to read what profd records: %s.", strerror(-r));
    *ret = TAKE_PTR(follow);
    return STATUS_OK;
}

int remote_follow_resume(const Context *c, Follow *follow) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    char error[FOLLOW_ERROR_MAX];
    int r = remote_try(c, &remote);

    if (r < 0)
        return r == -EACCES || r == -EPERM ? STATUS_FAILED : STATUS_NOT_RUNNING;
    r = follow_connect(follow, remote_connection(remote), REMOTE_TIMEOUT_NS, error);
    if (r < 0)
        return r == -EREMOTEIO || r == -ESTALE ? STATUS_FAILED : STATUS_NOT_RUNNING;
    return STATUS_OK;
}
