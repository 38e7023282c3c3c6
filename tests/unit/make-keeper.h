/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A keeper in the same process: opens events with the rights of the test, maps their rings, and
 * holds both when a sampler is gone, so that the next one finds them. It may be told to refuse.
 */

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/request/keeper-client.h"

#include "test.h"

enum { MADE_EVENTS_MAX = 512 };

typedef struct MadeEvent {
    bool is_open;
    int fd;
    void *memory;
    KeeperEvent event;
} MadeEvent;

struct Keeper {
    MadeEvent events[MADE_EVENTS_MAX];
    uint32_t n;
    /* An errno to answer with instead of opening; 0: none. */
    int (*refuse)(const KeeperEvent *event);
};

static inline const char *cgroup_root(void) {
    return access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup"
                                                            : "/sys/fs/cgroup/unified";
}

static inline size_t ring_mapping(const KeeperEvent *event) {
    return (size_t)sysconf(_SC_PAGESIZE) + event->ring_bytes;
}

static inline int made_open(Keeper *keeper, const KeeperEvent *event) {
    uint8_t attr[KEEPER_ATTR_MAX];
    unsigned long flags = PERF_FLAG_FD_CLOEXEC;
    int leader = -1, pid = event->pid, cgroup = -1, fd;

    memcpy(attr, event->attr, sizeof(attr));
    if (event->leader_slot != KEEPER_NO_SLOT)
        leader = keeper->events[event->leader_slot].fd;
    if (event->cgroup) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", cgroup_root(), event->cgroup);
        pid = cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (cgroup < 0)
            return -errno;
        flags |= PERF_FLAG_PID_CGROUP;
    }
    fd = (int)syscall(SYS_perf_event_open, attr, pid, event->cpu, leader, flags);
    if (fd < 0)
        fd = -errno;
    closep(&cgroup);
    return fd;
}

static inline int made_map(Keeper *keeper, MadeEvent *made) {
    const KeeperEvent *event = &made->event;

    if (event->ring_bytes > 0) {
        made->memory =
            mmap(NULL, ring_mapping(event), PROT_READ | PROT_WRITE, MAP_SHARED, made->fd, 0);
        if (made->memory == MAP_FAILED)
            return -errno;
    }
    if (event->output_slot != KEEPER_NO_SLOT &&
        ioctl(made->fd, PERF_EVENT_IOC_SET_OUTPUT, keeper->events[event->output_slot].fd) < 0)
        return -errno;
    return 0;
}

static inline void wait_for_keeper(const Keeper *keeper) {
}

int keeper_open_event(Keeper *keeper, const KeeperEvent *event, uint32_t *ret_slot, int *ret_fd) {
    MadeEvent *made = &keeper->events[keeper->n];
    int r = keeper->refuse ? keeper->refuse(event) : 0;

    wait_for_keeper(keeper);
    if (r < 0)
        return r;
    /* Which would be the keeper itself. */
    if (event->pid == 0)
        return -EINVAL;
    if (keeper->n == MADE_EVENTS_MAX)
        return -EMFILE;
    r = made_open(keeper, event);
    if (r < 0)
        return r;
    *made = (MadeEvent){.is_open = true, .fd = r, .event = *event};
    made->event.cgroup = NULL;
    r = made_map(keeper, made);
    if (r < 0) {
        close(made->fd);
        return r;
    }
    *ret_slot = keeper->n++;
    *ret_fd = fcntl(made->fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

int keeper_open_memory(Keeper *keeper, uint64_t bytes, const uint8_t tag[KEEPER_TAG_SIZE],
                       uint32_t *ret_slot, int *ret_fd) {
    KeeperEvent event = {.ring_bytes = bytes};
    MadeEvent *made = &keeper->events[keeper->n];
    int fd = memfd_create("arena", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return -errno;
    if (keeper->n == MADE_EVENTS_MAX)
        return -EMFILE;
    memcpy(event.tag, tag, KEEPER_TAG_SIZE);
    *made = (MadeEvent){.is_open = true, .fd = fd, .event = event};
    *ret_slot = keeper->n++;
    *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

int keeper_close_event(Keeper *keeper, uint32_t slot) {
    MadeEvent *made = &keeper->events[slot];

    wait_for_keeper(keeper);
    if (slot >= keeper->n || !made->is_open)
        return -EBADF;
    if (made->memory)
        munmap(made->memory, ring_mapping(&made->event));
    close(made->fd);
    made->is_open = false;
    return 0;
}

int keeper_next_event(Keeper *keeper, uint32_t *slot, KeeperEvent *ret, int *ret_fd) {
    uint32_t i = *slot == KEEPER_NO_SLOT ? 0 : *slot + 1;

    while (i < keeper->n && !keeper->events[i].is_open)
        i++;
    if (i >= keeper->n)
        return 0;
    *slot = i;
    *ret = keeper->events[i].event;
    *ret_fd = fcntl(keeper->events[i].fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 1;
}

int keeper_open_tracefs(Keeper *keeper _unused_, const char *path, int *ret_fd) {
    char full[PATH_MAX];
    int fd;

    snprintf(full, sizeof(full), "/sys/kernel/tracing/events/%s", path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static inline uint32_t made_count(const Keeper *keeper) {
    uint32_t n = 0;

    for (uint32_t i = 0; i < keeper->n; i++)
        n += keeper->events[i].is_open;
    return n;
}

static inline void made_done(Keeper *keeper) {
    for (uint32_t i = 0; i < keeper->n; i++)
        (void)keeper_close_event(keeper, i);
}
