/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/request/keeper-client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "keeper/request/keeper-request.h"
#include "util/clock.h"
#include "util/fd-message.h"

/*
 * The recorder's side. Each lane is a socket and a lock: one lane to the keeper for events and the
 * recorder's own state, and one to each helper, which may take as long as a file system does: an
 * opener for files of the kernel, another for files of other processes, and the sealer. So a thread
 * that scans or writes never delays one that records. A helper is started when it is needed, and
 * abandoned when it does not answer in time: a file system that hangs costs build ids, or leaves a
 * file unsealed, and nothing else. A separate descriptor on which nothing is ever sent shows when
 * the keeper is gone.
 */

enum {
    HELPER_TIMEOUT_MS = 5000,
    HELPER_TIMEOUTS_MAX = 12, /* for a helper that is only waiting for a CPU */
    WAIT_MS = 2,
    STAT_SIZE = 512, /* enough of the line for the process state */
};

/* `turn` makes it fair: a thread that calls again and again queues behind waiting threads. */
typedef struct Lane {
    int fd;
    uint32_t pid;      /* of the helper; 0: the keeper itself, which has no timeout */
    bool is_stoppable; /* see keeper_stop_waiting() */
    pthread_mutex_t turn, lock;
} Lane;

struct Keeper {
    Lane main, helpers[KEEPER_LANE_ELF]; /* indexed by KeeperLane */
    int life;
    int stop; /* becomes readable when threads must no longer wait for helpers */
    /* Used by one thread; others just wait. */
    void (*on_wait)(void *userdata);
    void *wait_userdata;
    _Atomic pid_t waiter; /* 0: none */
};

static bool keeper_client_is_waiter(const Keeper *keeper) {
    return atomic_load(&keeper->waiter) == gettid();
}

static void keeper_client_lock(Keeper *keeper, Lane *lane) {
    if (!keeper_client_is_waiter(keeper)) {
        pthread_mutex_lock(&lane->turn);
        pthread_mutex_lock(&lane->lock);
        pthread_mutex_unlock(&lane->turn);
        return;
    }
    while (pthread_mutex_trylock(&lane->lock) != 0) {
        keeper->on_wait(keeper->wait_userdata);
        (void)poll(NULL, 0, WAIT_MS);
    }
}

/* Whether the helper seems to be blocked in a file system, or stopped; a helper that is about to
 * run is not stuck. */
static bool keeper_client_is_stuck(uint32_t pid) {
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
static int keeper_client_timeout_of(const Lane *lane) {
    return lane->pid ? HELPER_TIMEOUT_MS : -1;
}

/* Waits once: 0 when there is an answer, -ETIMEDOUT when there is none in time. */
static int keeper_client_wait_once(const Keeper *keeper, const Lane *lane) {
    struct pollfd fds[] = {{.fd = lane->fd, .events = POLLIN},
                           {.fd = lane->is_stoppable ? keeper->stop : -1, .events = POLLIN}};
    uint64_t until =
        clock_monotonic_ns() + (uint64_t)MAX(keeper_client_timeout_of(lane), 0) * NS_PER_MS;
    bool waits = !keeper_client_is_waiter(keeper);

    while (poll(fds, ARRAY_SIZE(fds), waits ? keeper_client_timeout_of(lane) : WAIT_MS) == 0) {
        if (lane->pid && clock_monotonic_ns() >= until)
            return -ETIMEDOUT;
        if (!waits)
            keeper->on_wait(keeper->wait_userdata);
    }
    return fds[0].revents == 0 && fds[1].revents != 0 ? -ECANCELED : 0;
}

/* A helper that gets no CPU on a busy host is not stuck, so keep waiting for it. */
static int keeper_client_wait_for_answer(const Keeper *keeper, const Lane *lane) {
    int r = keeper_client_wait_once(keeper, lane);

    for (unsigned i = 1;
         r == -ETIMEDOUT && i < HELPER_TIMEOUTS_MAX && !keeper_client_is_stuck(lane->pid); i++)
        r = keeper_client_wait_once(keeper, lane);
    return r;
}

/* If ret_fd is NULL, a received descriptor is closed. */
static int keeper_client_exchange(const Keeper *keeper, const Lane *lane,
                                  const KeeperRequest *request, int fd, KeeperReply *ret,
                                  int *ret_fd) {
    _cleanup_close_ int got = -1;
    KeeperReply reply;
    int r = message_send(lane->fd, request, sizeof(*request), fd, 0);

    if (r == 0)
        r = keeper_client_wait_for_answer(keeper, lane);
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

static int keeper_client_call(Keeper *keeper, const KeeperRequest *request, int fd,
                              KeeperReply *ret, int *ret_fd) {
    KeeperReply reply;
    int r;

    keeper_client_lock(keeper, &keeper->main);
    r = keeper_client_exchange(keeper, &keeper->main, request, fd, &reply, ret_fd);
    pthread_mutex_unlock(&keeper->main.lock);
    if (r < 0)
        return r;
    if (ret)
        *ret = reply;
    return reply.result;
}

static KeeperRequest keeper_client_request_of(KeeperKind kind) {
    return (KeeperRequest){.protocol = KEEPER_PROTOCOL, .kind = kind};
}

/* A call that must return a descriptor when it succeeds. */
static int keeper_client_call_for_fd(Keeper *keeper, const KeeperRequest *request, KeeperReply *ret,
                                     int *ret_fd) {
    int fd = -1, r = keeper_client_call(keeper, request, -1, ret, &fd);

    if (r < 0)
        return r;
    if (fd < 0)
        return -EPROTO;
    *ret_fd = fd;
    return r;
}

static int keeper_client_open_lane(Keeper *keeper, KeeperLane lane, KeeperReply *ret, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_LANE);

    request.slot = lane;
    return keeper_client_call_for_fd(keeper, &request, ret, ret_fd);
}

static int keeper_client_start_helper(Keeper *keeper, KeeperLane number, Lane *lane) {
    KeeperReply reply;
    int r = keeper_client_open_lane(keeper, number, &reply, &lane->fd);

    if (r < 0)
        return r;
    lane->pid = reply.slot;
    return 0;
}

/* A helper that is stuck or died is abandoned, and the next call starts another. */
static int keeper_client_call_helper(Keeper *keeper, KeeperLane number,
                                     const KeeperRequest *request, int fd, KeeperReply *ret,
                                     int *ret_fd) {
    Lane *lane = &keeper->helpers[number];
    KeeperReply reply;
    int got = -1, r;

    keeper_client_lock(keeper, lane);
    r = lane->fd < 0 ? keeper_client_start_helper(keeper, number, lane) : 0;
    if (r == 0) {
        r = keeper_client_exchange(keeper, lane, request, fd, &reply, &got);
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

static int keeper_client_call_opener(Keeper *keeper, KeeperLane number,
                                     const KeeperRequest *request, KeeperReply *ret, int *ret_fd) {
    return keeper_client_call_helper(keeper, number, request, -1, ret, ret_fd);
}

static int keeper_client_set_path(KeeperRequest *request, const char *path) {
    size_t n = strlen(path);

    if (n >= sizeof(request->path))
        return -ENAMETOOLONG;
    memcpy(request->path, path, n);
    return 0;
}

static Lane keeper_client_lane_of(int fd) {
    return (Lane){.fd = fd, .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
}

int keeper_connect(int fd, Keeper **ret) {
    _cleanup_(keeper_disconnectp) Keeper *keeper = calloc(1, sizeof(*keeper));
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_LIFE);
    int r;

    if (!keeper) {
        closep(&fd);
        return -ENOMEM;
    }
    *keeper = (Keeper){.main = keeper_client_lane_of(fd), .life = -1};
    for (size_t i = 0; i < ARRAY_SIZE(keeper->helpers); i++) {
        keeper->helpers[i] = keeper_client_lane_of(-1);
        keeper->helpers[i].is_stoppable = i != KEEPER_LANE_SEAL;
    }
    keeper->stop = eventfd(0, EFD_CLOEXEC);
    r = keeper->stop < 0 ? -errno
                         : keeper_client_call_for_fd(keeper, &request, NULL, &keeper->life);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(keeper);
    return 0;
}

void keeper_set_wait(Keeper *keeper, void (*on_wait)(void *userdata), void *userdata) {
    keeper->on_wait = on_wait;
    keeper->wait_userdata = userdata;
    atomic_store(&keeper->waiter, on_wait ? gettid() : 0);
}

int keeper_fd(const Keeper *keeper) {
    return keeper->life;
}

Keeper *keeper_disconnect(Keeper *keeper) {
    if (!keeper)
        return NULL;
    closep(&keeper->main.fd);
    closep(&keeper->life);
    closep(&keeper->stop);
    pthread_mutex_destroy(&keeper->main.turn);
    pthread_mutex_destroy(&keeper->main.lock);
    for (size_t i = 0; i < ARRAY_SIZE(keeper->helpers); i++) {
        closep(&keeper->helpers[i].fd);
        pthread_mutex_destroy(&keeper->helpers[i].turn);
        pthread_mutex_destroy(&keeper->helpers[i].lock);
    }
    free(keeper);
    return NULL;
}

void keeper_stop_waiting(Keeper *keeper) {
    uint64_t one = 1;

    (void)!write(keeper->stop, &one, sizeof(one));
}

int keeper_stop_fd(const Keeper *keeper) {
    return keeper->stop;
}

int keeper_open_event(Keeper *keeper, const KeeperEvent *event, uint32_t *ret_slot, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_EVENT);
    KeeperReply reply;
    int r = event->cgroup ? keeper_client_set_path(&request, event->cgroup) : 0;

    if (r < 0)
        return r;
    request.event = (KeeperEventData){.pid = event->pid,
                                      .cpu = event->cpu,
                                      .leader_slot = event->leader_slot,
                                      .output_slot = event->output_slot,
                                      .ring_bytes = event->ring_bytes,
                                      .attr_size = event->attr_size};
    memcpy(request.event.attr, event->attr, MIN(event->attr_size, (uint32_t)KEEPER_ATTR_MAX));
    memcpy(request.event.tag, event->tag, KEEPER_TAG_SIZE);
    r = keeper_client_call_for_fd(keeper, &request, &reply, ret_fd);
    if (r < 0)
        return r;
    *ret_slot = reply.slot;
    return 0;
}

int keeper_close_event(Keeper *keeper, uint32_t slot) {
    KeeperRequest request = keeper_client_request_of(KEEPER_CLOSE_EVENT);

    request.slot = slot;
    return keeper_client_call(keeper, &request, -1, NULL, NULL);
}

int keeper_next_event(Keeper *keeper, uint32_t *slot, KeeperEvent *ret, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_NEXT_EVENT);
    _cleanup_close_ int fd = -1;
    KeeperReply reply;
    int r;

    request.slot = *slot;
    r = keeper_client_call(keeper, &request, -1, &reply, &fd);
    if (r <= 0)
        return r;
    if (fd < 0)
        return -EPROTO;
    *slot = reply.slot;
    *ret_fd = TAKE_FD(fd);
    *ret = (KeeperEvent){.attr_size = reply.event.attr_size,
                         .pid = reply.event.pid,
                         .cpu = reply.event.cpu,
                         .leader_slot = reply.event.leader_slot,
                         .output_slot = reply.event.output_slot,
                         .ring_bytes = reply.event.ring_bytes};
    memcpy(ret->attr, reply.event.attr, KEEPER_ATTR_MAX);
    memcpy(ret->tag, reply.event.tag, KEEPER_TAG_SIZE);
    return 1;
}

int keeper_open_file(Keeper *keeper, KeeperFile file, uint32_t pid, uint32_t tid, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_FILE);

    request.file = file;
    request.pid = pid;
    request.tid = tid;
    return keeper_client_call_opener(keeper, KEEPER_LANE_SYSTEM, &request, NULL, ret_fd);
}

int keeper_read_namespaces(Keeper *keeper, uint32_t pid, KeeperNamespace ret[KEEPER_NAMESPACES]) {
    KeeperRequest request = keeper_client_request_of(KEEPER_READ_NAMESPACES);
    KeeperReply reply;
    int r;

    request.pid = pid;
    r = keeper_client_call_opener(keeper, KEEPER_LANE_SYSTEM, &request, &reply, NULL);
    if (r < 0)
        return r;
    memcpy(ret, reply.namespaces, sizeof(reply.namespaces));
    return 0;
}

static int keeper_client_call_for_image(Keeper *keeper, const KeeperRequest *request,
                                        KeeperFileId *ret_id, int *ret_fd) {
    KeeperReply reply;
    int r = keeper_client_call_opener(keeper, KEEPER_LANE_IMAGES, request, &reply, ret_fd);

    if (r < 0)
        return r;
    *ret_id = reply.id;
    return 0;
}

int keeper_open_mapped(Keeper *keeper, uint32_t pid, uint64_t start, uint64_t end,
                       KeeperFileId *ret_id, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_MAPPED);

    request.pid = pid;
    request.start = start;
    request.end = end;
    return keeper_client_call_for_image(keeper, &request, ret_id, ret_fd);
}

int keeper_open_image(Keeper *keeper, uint32_t pid, const char *path, KeeperFileId *ret_id,
                      int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_IMAGE);
    int r = keeper_client_set_path(&request, path);

    request.pid = pid;
    return r < 0 ? r : keeper_client_call_for_image(keeper, &request, ret_id, ret_fd);
}

int keeper_start_elf(Keeper *keeper, uint32_t *ret_pid, int *ret_fd) {
    KeeperReply reply;
    int r = keeper_client_open_lane(keeper, KEEPER_LANE_ELF, &reply, ret_fd);

    if (r < 0)
        return r;
    *ret_pid = reply.slot;
    return 0;
}

int keeper_elf_end(Keeper *keeper, int *ret_status) {
    KeeperRequest request = keeper_client_request_of(KEEPER_END_OF_LANE);
    KeeperReply reply;
    int r;

    request.slot = KEEPER_LANE_ELF;
    r = keeper_client_call(keeper, &request, -1, &reply, NULL);
    if (r < 0)
        return r;
    *ret_status = (int)reply.slot;
    return 0;
}

int keeper_open_tracefs(Keeper *keeper, const char *path, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_OPEN_TRACEFS);
    int r = keeper_client_set_path(&request, path);

    return r < 0 ? r
                 : keeper_client_call_opener(keeper, KEEPER_LANE_SYSTEM, &request, NULL, ret_fd);
}

int keeper_seal(Keeper *keeper, int fd, bool sensitive) {
    KeeperRequest request = keeper_client_request_of(KEEPER_SEAL);

    request.sensitive = sensitive;
    return keeper_client_call_helper(keeper, KEEPER_LANE_SEAL, &request, fd, NULL, NULL);
}

int keeper_listen(Keeper *keeper, int *ret_fd) {
    KeeperRequest request = keeper_client_request_of(KEEPER_LISTEN);

    return keeper_client_call_for_fd(keeper, &request, NULL, ret_fd);
}

int keeper_take_over(Keeper *keeper) {
    KeeperRequest request = keeper_client_request_of(KEEPER_TAKE_OVER);

    return keeper_client_call(keeper, &request, -1, NULL, NULL);
}

int keeper_ready(Keeper *keeper) {
    KeeperRequest request = keeper_client_request_of(KEEPER_READY);

    return keeper_client_call(keeper, &request, -1, NULL, NULL);
}

int keeper_status(Keeper *keeper, KeeperStatus *ret) {
    KeeperRequest request = keeper_client_request_of(KEEPER_STATUS);
    KeeperReply reply;
    int r = keeper_client_call(keeper, &request, -1, &reply, NULL);

    if (r < 0)
        return r;
    *ret = (KeeperStatus){.n_events = reply.n_events,
                          .restarts = reply.restarts,
                          .upgraded = reply.upgraded != 0,
                          .cpu_ns = reply.cpu_ns};
    return 0;
}
