/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Streams what a session records to a client, from a time in the past on: the records of its
 * segments, finished ones and the open one, as a perf.data pipe stream. Each follower runs on the
 * thread that its caller gives it; everything else belongs to the main thread.
 */

#include "store/folder/store.h"
#include "store/follow/follower-option.h"
#include "store/window/snapshot-request.h"
#include "util/bytes.h"
#include "util/macro.h"

enum { FOLLOWERS_MAX = 40 };

typedef struct FollowerList FollowerList;
typedef struct Follower Follower;

int follower_list_new(Store *store, FollowerList **ret);
/* Ends all followers and waits for them. Nothing may be added any more. */
FollowerList *follower_list_free(FollowerList *list);
DEFINE_CLEANUP(FollowerList *, follower_list_free);
/* Called when a sweep is written. Whether one of them needs the next sweep at once, since its
 * window has ended. */
bool follower_list_wake(FollowerList *list);
/* When one of them next wants what is new, CLOCK_MONOTONIC; UINT64_MAX: there are none. */
uint64_t follower_list_next_ns(FollowerList *list);
/* Called at the end of a sweep. Whether one of them wants it written at once; these wait for their
 * next turn then. */
bool follower_list_wants(FollowerList *list, uint64_t now_ns);

/* -EBUSY: there are too many. */
int follower_new(FollowerList *list, const FollowerOptions *options, Follower **ret);
Follower *follower_free(Follower *follower);
/* Finds where the window begins; touches the disk. What window_new() returns, and -EACCES. A window
 * that begins behind everything recorded is no error, unless it has ended. */
int follower_seek(Follower *follower, SnapshotFailure *ret_why);
/* Sends until the window, the client or the list ends, and frees the follower. `socket`: see
 * CallSink; send() is its function, too. */
void follower_run(Follower *follower, int socket, int (*send)(void *to, Bytes bytes), void *to);
