/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/request/keeper-client.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "keeper/request/keeper-lane.h"

/*
 * The recorder's side, a function for each kind of request. A separate descriptor on which nothing
 * is ever sent shows when the keeper is gone.
 */

static int keeper_client_call_opener(Keeper *keeper, KeeperLane number,
                                     const KeeperRequest *request, KeeperReply *ret, int *ret_fd) {
    return keeper_lane_call_helper(keeper, number, request, -1, ret, ret_fd);
}

static int keeper_client_set_path(KeeperRequest *request, const char *path) {
    size_t n = strlen(path);

    if (n >= sizeof(request->path))
        return -ENAMETOOLONG;
    memcpy(request->path, path, n);
    return 0;
}

int keeper_connect(int fd, Keeper **ret) {
    _cleanup_(keeper_disconnectp) Keeper *keeper = calloc(1, sizeof(*keeper));
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_LIFE);
    int r;

    if (!keeper) {
        closep(&fd);
        return -ENOMEM;
    }
    *keeper = (Keeper){.main = keeper_lane_of(fd), .life = -1};
    for (size_t i = 0; i < ARRAY_SIZE(keeper->helpers); i++) {
        keeper->helpers[i] = keeper_lane_of(-1);
        keeper->helpers[i].is_stoppable = i != KEEPER_LANE_SEAL;
        keeper->helpers[i].timeout_ms = KEEPER_HELPER_TIMEOUT_MS;
    }
    keeper->stop = eventfd(0, EFD_CLOEXEC);
    r = keeper->stop < 0 ? -errno : keeper_lane_call_for_fd(keeper, &request, NULL, &keeper->life);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(keeper);
    return 0;
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
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_EVENT);
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
    r = keeper_lane_call_for_fd(keeper, &request, &reply, ret_fd);
    if (r < 0)
        return r;
    *ret_slot = reply.slot;
    return 0;
}

int keeper_open_memory(Keeper *keeper, uint64_t bytes, const uint8_t tag[KEEPER_TAG_SIZE],
                       uint32_t *ret_slot, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_MEMORY);
    KeeperReply reply;
    int r;

    request.event.ring_bytes = bytes;
    memcpy(request.event.tag, tag, KEEPER_TAG_SIZE);
    r = keeper_lane_call_for_fd(keeper, &request, &reply, ret_fd);
    if (r < 0)
        return r;
    *ret_slot = reply.slot;
    return 0;
}

int keeper_close_event(Keeper *keeper, uint32_t slot) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_CLOSE_EVENT);

    request.slot = slot;
    return keeper_lane_call(keeper, &request, -1, NULL, NULL);
}

int keeper_next_event(Keeper *keeper, uint32_t *slot, KeeperEvent *ret, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_NEXT_EVENT);
    _cleanup_close_ int fd = -1;
    KeeperReply reply;
    int r;

    request.slot = *slot;
    r = keeper_lane_call(keeper, &request, -1, &reply, &fd);
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

int keeper_open_file(Keeper *keeper, KeeperFile file, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_FILE);

    request.file = file;
    return keeper_client_call_opener(keeper, KEEPER_LANE_SYSTEM, &request, NULL, ret_fd);
}

int keeper_read_process(Keeper *keeper, uint32_t pid, uint32_t tid, KeeperMaps maps,
                        uint64_t address, int *ret_maps, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_READ_PROCESS);
    KeeperReply reply;
    int r;

    request.file = maps;
    request.pid = pid;
    request.tid = tid;
    request.start = address;
    r = keeper_client_call_opener(keeper, KEEPER_LANE_MAPS, &request, &reply, ret_fd);
    if (r == 0)
        *ret_maps = -(int)MIN(reply.slot, (uint32_t)INT_MAX);
    return r;
}

void keeper_set_patience(Keeper *keeper, unsigned ms) {
    keeper->helpers[KEEPER_LANE_MAPS].timeout_ms = (int)ms;
}

int keeper_read_namespaces(Keeper *keeper, uint32_t pid, KeeperNamespace ret[KEEPER_NAMESPACES]) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_READ_NAMESPACES);
    KeeperReply reply;
    int r;

    request.pid = pid;
    r = keeper_client_call_opener(keeper, KEEPER_LANE_MAPS, &request, &reply, NULL);
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
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_MAPPED);

    request.pid = pid;
    request.start = start;
    request.end = end;
    return keeper_client_call_for_image(keeper, &request, ret_id, ret_fd);
}

int keeper_open_image(Keeper *keeper, uint32_t pid, const char *path, KeeperFileId *ret_id,
                      int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_IMAGE);
    int r = keeper_client_set_path(&request, path);

    request.pid = pid;
    return r < 0 ? r : keeper_client_call_for_image(keeper, &request, ret_id, ret_fd);
}

int keeper_open_code_map(Keeper *keeper, uint32_t pid, uint32_t inner, uint64_t start, uint64_t end,
                         int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_CODE_MAP);

    request.pid = pid;
    request.tid = inner;
    request.start = start;
    request.end = end;
    return keeper_client_call_opener(keeper, KEEPER_LANE_IMAGES, &request, NULL, ret_fd);
}

int keeper_start_elf(Keeper *keeper, uint32_t *ret_pid, int *ret_fd) {
    KeeperReply reply;
    int r = keeper_lane_open(keeper, KEEPER_LANE_ELF, &reply, ret_fd);

    if (r < 0)
        return r;
    *ret_pid = reply.slot;
    return 0;
}

int keeper_elf_end(Keeper *keeper, int *ret_status) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_END_OF_LANE);
    KeeperReply reply;
    int r;

    request.slot = KEEPER_LANE_ELF;
    r = keeper_lane_call(keeper, &request, -1, &reply, NULL);
    if (r < 0)
        return r;
    *ret_status = (int)reply.slot;
    return 0;
}

int keeper_open_tracefs(Keeper *keeper, const char *path, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_OPEN_TRACEFS);
    int r = keeper_client_set_path(&request, path);

    return r < 0 ? r
                 : keeper_client_call_opener(keeper, KEEPER_LANE_SYSTEM, &request, NULL, ret_fd);
}

int keeper_seal(Keeper *keeper, int fd, bool sensitive) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_SEAL);

    request.sensitive = sensitive;
    return keeper_lane_call_helper(keeper, KEEPER_LANE_SEAL, &request, fd, NULL, NULL);
}

bool keeper_dispose(Keeper *keeper, int fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_CLOSE);
    _cleanup_close_ int next = eventfd(0, EFD_CLOEXEC);

    if (next < 0 || keeper_lane_send(keeper, KEEPER_LANE_CLOSE, &request, fd) < 0)
        return false;
    (void)close(fd);
    /* The helper closes what it has when the next one comes: only the last to close it waits. */
    (void)keeper_lane_send(keeper, KEEPER_LANE_CLOSE, &request, next);
    return true;
}

int keeper_listen(Keeper *keeper, int *ret_fd) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_LISTEN);

    return keeper_lane_call_for_fd(keeper, &request, NULL, ret_fd);
}

int keeper_take_over(Keeper *keeper) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_TAKE_OVER);

    return keeper_lane_call(keeper, &request, -1, NULL, NULL);
}

int keeper_ready(Keeper *keeper) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_READY);

    return keeper_lane_call(keeper, &request, -1, NULL, NULL);
}

int keeper_status(Keeper *keeper, KeeperStatus *ret) {
    KeeperRequest request = keeper_lane_request_of(KEEPER_STATUS);
    KeeperReply reply;
    int r = keeper_lane_call(keeper, &request, -1, &reply, NULL);

    if (r < 0)
        return r;
    *ret = (KeeperStatus){.n_events = reply.n_events,
                          .restarts = reply.restarts,
                          .upgraded = reply.upgraded != 0,
                          .lacks_elf = reply.slot & KEEPER_LACKS_ELF,
                          .lacks_locking = reply.slot & KEEPER_LACKS_LOCKING,
                          .cpu_ns = reply.cpu_ns};
    return 0;
}
