/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/request/keeper-lane.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/fd-message.h"

/*
 * Each lane is a socket and a lock: one lane to the keeper for events and the recorder's own state,
 * and one to each helper, which may take as long as a file system or a process does. So a thread
 * that scans or writes never delays one that records. A helper is started when it is needed, and
 * abandoned when it does not answer in time: a file system that hangs costs build ids, or leaves a
 * file unsealed, and nothing else.
 */

enum {
    SEND_MS = 20,
    STAT_SIZE = 512, /* enough of the line for the process state */
};

#define HELPER_WAITS_CPU_NS (60 * NS_PER_SECOND) /* for one that is only waiting for a CPU */

static void keeper_lane_lock(Lane *lane) {
    pthread_mutex_lock(&lane->turn);
    pthread_mutex_lock(&lane->lock);
    pthread_mutex_unlock(&lane->turn);
}

/* Whether the helper seems to be blocked in a file system, or stopped; a helper that is about to
 * run is not stuck. */
static bool keeper_lane_is_stuck(uint32_t pid) {
    char path[32], text[STAT_SIZE];
    _cleanup_close_ int fd = -1;
    const char *name_end;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return true;
    text[n] = '\0';
    name_end = strrchr(text, ')');
    return !name_end || strncmp(name_end, ") R", 3) != 0;
}

/* How long to wait before the state of the helper is checked; -1: for ever. */
static int keeper_lane_timeout_of(const Lane *lane) {
    return lane->pid ? lane->timeout_ms : -1;
}

/* Waits once: 0 when there is an answer, -ETIMEDOUT when there is none in time. */
static int keeper_lane_wait_once(const Keeper *keeper, const Lane *lane) {
    struct pollfd fds[] = {{.fd = lane->fd, .events = POLLIN},
                           {.fd = lane->is_stoppable ? keeper->stop : -1, .events = POLLIN}};

    if (poll(fds, ARRAY_SIZE(fds), keeper_lane_timeout_of(lane)) == 0)
        return -ETIMEDOUT;
    return fds[0].revents == 0 && fds[1].revents != 0 ? -ECANCELED : 0;
}

/* It may have answered after the last wait, and be waiting for the next request. */
static bool keeper_lane_has_answer(const Lane *lane) {
    struct pollfd readable = {.fd = lane->fd, .events = POLLIN};

    return poll(&readable, 1, 0) > 0;
}

/* A helper that gets no CPU on a busy host is not stuck, so keep waiting for it. */
static int keeper_lane_wait_for_answer(const Keeper *keeper, const Lane *lane) {
    uint64_t until = clock_monotonic_ns() + HELPER_WAITS_CPU_NS;
    int r;

    do
        r = keeper_lane_wait_once(keeper, lane);
    while (r == -ETIMEDOUT && clock_monotonic_ns() < until && !keeper_lane_is_stuck(lane->pid));
    return r == -ETIMEDOUT && keeper_lane_has_answer(lane) ? 0 : r;
}

/* If ret_fd is NULL, a received descriptor is closed. */
static int keeper_lane_exchange(const Keeper *keeper, const Lane *lane,
                                const KeeperRequest *request, int fd, KeeperReply *ret,
                                int *ret_fd) {
    _cleanup_close_ int got = -1;
    KeeperReply reply;
    int r = message_send(lane->fd, request, sizeof(*request), fd, 0);

    if (r == 0)
        r = keeper_lane_wait_for_answer(keeper, lane);
    if (r == 0)
        r = message_receive(lane->fd, &reply, sizeof(reply), &got);
    if (r < 0)
        return r;
    if (r != sizeof(reply) || reply.protocol != KEEPER_PROTOCOL)
        return -EPROTO;
    *ret = reply;
    if (ret_fd)
        *ret_fd = TAKE_FD(got);
    return 0;
}

int keeper_lane_call(Keeper *keeper, const KeeperRequest *request, int fd, KeeperReply *ret,
                     int *ret_fd) {
    KeeperReply reply;
    int r;

    keeper_lane_lock(&keeper->main);
    r = keeper_lane_exchange(keeper, &keeper->main, request, fd, &reply, ret_fd);
    pthread_mutex_unlock(&keeper->main.lock);
    if (r < 0)
        return r;
    if (ret)
        *ret = reply;
    return reply.result;
}

KeeperRequest keeper_lane_request_of(KeeperKind kind) {
    return (KeeperRequest){.protocol = KEEPER_PROTOCOL, .kind = kind};
}

int keeper_lane_call_for_fd(Keeper *keeper, const KeeperRequest *request, KeeperReply *ret,
                            int *ret_fd) {
    int fd = -1, r = keeper_lane_call(keeper, request, -1, ret, &fd);

    if (r < 0)
        return r;
    if (fd < 0)
        return -EPROTO;
    *ret_fd = fd;
    return r;
}

int keeper_lane_open(Keeper *keeper, KeeperLane lane, KeeperReply *ret, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_LANE);

    request.slot = lane;
    return keeper_lane_call_for_fd(keeper, &request, ret, ret_fd);
}

static int keeper_lane_start_helper(Keeper *keeper, KeeperLane number, Lane *lane) {
    KeeperReply reply;
    int r = keeper_lane_open(keeper, number, &reply, &lane->fd);

    if (r < 0)
        return r;
    lane->pid = reply.slot;
    return 0;
}

int keeper_lane_call_helper(Keeper *keeper, KeeperLane number, const KeeperRequest *request, int fd,
                            KeeperReply *ret, int *ret_fd) {
    Lane *lane = &keeper->helpers[number];
    KeeperReply reply;
    int got = -1, r;

    keeper_lane_lock(lane);
    r = lane->fd < 0 ? keeper_lane_start_helper(keeper, number, lane) : 0;
    if (r == 0) {
        r = keeper_lane_exchange(keeper, lane, request, fd, &reply, &got);
        if (r < 0)
            closep(&lane->fd);
        r = r == -EPIPE ? -EIO : r;
    }
    pthread_mutex_unlock(&lane->lock);
    if (r == 0 && reply.result >= 0 && ret)
        *ret = reply;
    if (r == 0 && reply.result >= 0 && ret_fd && got >= 0)
        *ret_fd = TAKE_FD(got);
    else if (r == 0 && reply.result >= 0 && ret_fd)
        r = -EPROTO;
    closep(&got);
    return r < 0 ? r : MIN(reply.result, 0);
}

/* A helper that is only slow takes it in a moment. */
static int keeper_lane_try_to_send(const Lane *lane, const KeeperRequest *request, int fd) {
    struct pollfd writable = {.fd = lane->fd, .events = POLLOUT};
    int r = message_send(lane->fd, request, sizeof(*request), fd, MSG_DONTWAIT);

    if (r == -EAGAIN && poll(&writable, 1, SEND_MS) > 0)
        r = message_send(lane->fd, request, sizeof(*request), fd, MSG_DONTWAIT);
    return r;
}

int keeper_lane_send(Keeper *keeper, KeeperLane number, const KeeperRequest *request, int fd) {
    Lane *lane = &keeper->helpers[number];
    int r = -EAGAIN;

    keeper_lane_lock(lane);
    for (unsigned i = 0; r < 0 && i < 2; i++) {
        r = lane->fd < 0 ? keeper_lane_start_helper(keeper, number, lane) : 0;
        if (r == 0)
            r = keeper_lane_try_to_send(lane, request, fd);
        if (r < 0)
            closep(&lane->fd);
    }
    pthread_mutex_unlock(&lane->lock);
    return r;
}

Lane keeper_lane_of(int fd) {
    return (Lane){.fd = fd, .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
}
