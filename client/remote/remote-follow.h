/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Begins to follow the running profd, and words its errors as other calls do. */

#include "client/frame/command.h"
#include "follow/follow.h"

/* An ExitStatus; reports failures. With may_be_absent it does not report that nothing was recorded:
 * that is STATUS_NOT_FOUND alone. */
int remote_follow(const Context *c, const FollowOptions *options, bool may_be_absent, Follow **ret);
/* Connects again and continues where it ended, with a new reader. An ExitStatus without a message:
 * STATUS_NOT_RUNNING while nothing listens; STATUS_FAILED if it cannot continue, because the host
 * has been booted or the session is gone. */
int remote_follow_resume(const Context *c, Follow *follow);
