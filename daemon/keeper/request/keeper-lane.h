/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a request reaches the keeper or one of its helpers, and what happens when no answer comes. */

#include <pthread.h>

#include "keeper/request/keeper-request.h"

enum { KEEPER_HELPER_TIMEOUT_MS = 5000 };

/* `turn` makes it fair: a thread that calls again and again queues behind waiting threads. */
typedef struct Lane {
    int fd;
    int timeout_ms;    /* of a helper, see keeper_set_patience() */
    uint32_t pid;      /* of the helper; 0: the keeper itself, which has no timeout */
    bool is_stoppable; /* see keeper_stop_waiting() */
    pthread_mutex_t turn, lock;
} Lane;

struct Keeper {
    Lane main, helpers[KEEPER_LANE_ELF]; /* indexed by KeeperLane */
    int life;
    int stop; /* becomes readable when threads must no longer wait for helpers */
};

/* A lane with this socket; -1: its helper is not started yet. */
Lane keeper_lane_of(int fd);
/* A request with nothing but its kind. */
KeeperRequest keeper_lane_request_of(KeeperKind kind);
/* Asks the keeper. Returns the result of the reply, or a negative errno. `ret` and `ret_fd` may be
 * NULL; a received descriptor is then closed. */
int keeper_lane_call(Keeper *keeper, const KeeperRequest *request, int fd, KeeperReply *ret,
                     int *ret_fd);
/* A call that must return a descriptor when it succeeds. */
int keeper_lane_call_for_fd(Keeper *keeper, const KeeperRequest *request, KeeperReply *ret,
                            int *ret_fd);
int keeper_lane_open(Keeper *keeper, KeeperLane lane, KeeperReply *ret, int *ret_fd);
/* Sends a request that has no reply, and waits for a moment at most. A helper that does not take it
 * is replaced.
 */
int keeper_lane_send(Keeper *keeper, KeeperLane number, const KeeperRequest *request, int fd);
/* A helper that is stuck or died is abandoned, and the next call starts another. */
int keeper_lane_call_helper(Keeper *keeper, KeeperLane number, const KeeperRequest *request, int fd,
                            KeeperReply *ret, int *ret_fd);
