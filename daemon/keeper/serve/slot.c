/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/slot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "perfdata/event/format.h"
#include "util/array.h"
#include "util/bytes.h"
#include "util/file.h"
#include "util/parse.h"

/*
 * perf_event_open() with the keeper's rights. A ring exists as long as it is mapped, so it is
 * mapped here, in the way that makes it a ring (writable, so that the reader's tail is respected)
 * or, for events that write backward, a buffer that the kernel overwrites. The keeper never reads a
 * ring. Memory needs no map: its descriptor keeps it, and the keeper never reads it either.
 *
 * An event of a process waits for the lock of its rights, which an exec that waits for a file
 * system holds for ever, and everything else would wait for the keeper. Only a signal ends that.
 */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3; vm.memfd_noexec=2 allows no other memfd */
#endif

enum {
    TYPES_MAX = 4096,             /* the most PMUs that are listed */
    TYPE_DYNAMIC = PERF_TYPE_MAX, /* the first type number that sysfs assigns */
    PROCESS_WAIT_US = 500000,
    PROCESS_AGAIN_US = 50000, /* for a signal that came just before the wait */
};

#define RINGS_BYTES_MIN (1ULL << 30)

typedef struct Slot {
    int fd; /* -1: free */
    void *ring;
    size_t ring_size;
    KeeperEventData event;
} Slot;

struct Slots {
    Slot *slots;
    size_t n;
    size_t lowest; /* no slot below it is free */
    uint32_t used;
    uint64_t ring_bytes, ring_bytes_max; /* of all rings and memory together */
};

static void slot_done(Slot *slot) {
    if (slot->ring)
        (void)munmap(slot->ring, slot->ring_size);
    closep(&slot->fd);
    *slot = (Slot){.fd = -1};
}

/* Bounded here too, since whoever sends requests may lie: by a sixteenth of the memory. */
static uint64_t slot_bound_rings(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t memory = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;

    return MAX(RINGS_BYTES_MIN, memory / 16);
}

int slots_new(Slots **ret) {
    Slots *slots = calloc(1, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    slots->ring_bytes_max = slot_bound_rings();
    *ret = slots;
    return 0;
}

Slots *slots_free(Slots *slots) {
    if (!slots)
        return NULL;
    for (size_t i = 0; i < slots->n; i++)
        slot_done(&slots->slots[i]);
    free(slots->slots);
    free(slots);
    return NULL;
}

static Slot *slot_at(const Slots *slots, uint32_t slot) {
    return slot < slots->n && slots->slots[slot].fd >= 0 ? &slots->slots[slot] : NULL;
}

/* kprobe and uprobe are excluded: they take a pointer into the caller's memory, here the keeper's,
 * and create a probe; recordings do not need them. */
static bool slot_is_pmu(const char *name, uint32_t type) {
    char path[320], text[32];
    uint64_t value;

    if (strcmp(name, "kprobe") == 0 || strcmp(name, "uprobe") == 0 || name[0] == '.')
        return false;
    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%.255s/type", name);
    return file_read_text(path, text, sizeof(text)) >= 0 && parse_u64(text, &value) == 0 &&
           value == type;
}

static int slot_check_type(uint32_t type) {
    struct dirent *entry;
    DIR *folder;
    int r = -ENOENT;

    if (type < TYPE_DYNAMIC)
        return 0;
    folder = opendir("/sys/bus/event_source/devices");
    if (!folder)
        return -errno;
    for (unsigned i = 0; r < 0 && i < TYPES_MAX && (entry = readdir(folder)); i++)
        if (slot_is_pmu(entry->d_name, type))
            r = 0;
    (void)closedir(folder);
    return r;
}

static int slot_map_ring(const Slots *slots, Slot *slot) {
    uint64_t flags =
        load_u64(slot->event.attr + offsetof(struct perf_event_attr, read_format) + 8, false);
    int protection = flags & PD_ATTR_WRITE_BACKWARD ? PROT_READ : PROT_READ | PROT_WRITE;
    size_t size = slot->event.ring_bytes + (size_t)sysconf(_SC_PAGESIZE);
    void *ring;

    if (slot->event.ring_bytes > slots->ring_bytes_max - slots->ring_bytes)
        return -ENOBUFS;
    ring = mmap(NULL, size, protection, MAP_SHARED, slot->fd, 0);
    if (ring == MAP_FAILED)
        return -errno;
    slot->ring = ring;
    slot->ring_size = size;
    return 0;
}

static void slot_on_alarm(int number _unused_) {
}

/* perf_event_open() of a process. -ETIMEDOUT: it waited for the process. */
static int slot_open_process(KeeperEventData *event, int leader, unsigned long flags) {
    static const struct itimerval none,
        wait = {.it_value.tv_usec = PROCESS_WAIT_US, .it_interval.tv_usec = PROCESS_AGAIN_US};
    struct sigaction action = {.sa_handler = slot_on_alarm}, before;
    int fd, error;

    (void)sigaction(SIGALRM, &action, &before);
    (void)setitimer(ITIMER_REAL, &wait, NULL);
    fd = (int)syscall(SYS_perf_event_open, event->attr, event->pid, event->cpu, leader, flags);
    error = errno;
    (void)setitimer(ITIMER_REAL, &none, NULL);
    (void)sigaction(SIGALRM, &before, NULL);
    if (fd < 0)
        return error == EINTR ? -ETIMEDOUT : -error;
    return fd;
}

static int slot_open_cpu(KeeperEventData *event, int cgroup, int leader, unsigned long flags) {
    int fd = (int)syscall(SYS_perf_event_open, event->attr, cgroup, event->cpu, leader, flags);

    return fd < 0 ? -errno : fd;
}

static int slot_open(const Slots *slots, Slot *slot, int cgroup_fd) {
    KeeperEventData *event = &slot->event;
    const Slot *leader = slot_at(slots, event->leader_slot);
    const Slot *output = slot_at(slots, event->output_slot);
    unsigned long flags = PERF_FLAG_FD_CLOEXEC | (cgroup_fd >= 0 ? PERF_FLAG_PID_CGROUP : 0);
    int r = slot_check_type(load_u32(event->attr, false));

    if (r < 0)
        return r;
    if ((!leader && event->leader_slot != KEEPER_NO_SLOT) ||
        (!output && event->output_slot != KEEPER_NO_SLOT))
        return -EBADF;
    r = event->pid >= 0 ? slot_open_process(event, leader ? leader->fd : -1, flags)
                        : slot_open_cpu(event, cgroup_fd, leader ? leader->fd : -1, flags);
    if (r < 0)
        return r;
    slot->fd = r;
    if (output && ioctl(slot->fd, PERF_EVENT_IOC_SET_OUTPUT, output->fd) < 0)
        return -errno;
    return event->ring_bytes > 0 ? slot_map_ring(slots, slot) : 0;
}

static int slot_free(Slots *slots, uint32_t *ret) {
    size_t i = slots->lowest;

    while (i < slots->n && slots->slots[i].fd >= 0)
        i++;
    slots->lowest = i;
    if (i == KEEPER_SLOTS_MAX)
        return -ENOSPC;
    if (i == slots->n) {
        Slot *slot = array_grow(&slots->slots, &slots->n);

        if (!slot)
            return -ENOMEM;
        slot->fd = -1;
    }
    *ret = (uint32_t)i;
    return 0;
}

/* Takes what was opened with result r. */
static int slot_take(Slots *slots, Slot *slot, int r, uint32_t *ret_slot, int *ret_fd) {
    uint32_t number = 0;

    if (r == 0)
        r = slot_free(slots, &number);
    if (r < 0) {
        slot_done(slot);
        return r;
    }
    slots->slots[number] = *slot;
    slots->used++;
    slots->ring_bytes += slot->event.ring_bytes;
    *ret_slot = number;
    *ret_fd = slot->fd;
    return 0;
}

int slots_open(Slots *slots, const KeeperEventData *event, int cgroup_fd, uint32_t *ret_slot,
               int *ret_fd) {
    Slot slot = {.fd = -1, .event = *event};

    return slot_take(slots, &slot, slot_open(slots, &slot, cgroup_fd), ret_slot, ret_fd);
}

/* A recorder that could change its size would make the next one die of SIGBUS. */
static int slot_open_memory(const Slots *slots, Slot *slot) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

    if (slot->event.ring_bytes > slots->ring_bytes_max - slots->ring_bytes)
        return -ENOBUFS;
    slot->fd = memfd_create("profd-arena", flags | MFD_NOEXEC_SEAL);
    if (slot->fd < 0 && errno == EINVAL)
        slot->fd = memfd_create("profd-arena", flags);
    if (slot->fd < 0 || ftruncate(slot->fd, (off_t)slot->event.ring_bytes) < 0 ||
        fcntl(slot->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return 0;
}

int slots_open_memory(Slots *slots, const KeeperEventData *event, uint32_t *ret_slot, int *ret_fd) {
    Slot slot = {.fd = -1, .event = *event};

    return slot_take(slots, &slot, slot_open_memory(slots, &slot), ret_slot, ret_fd);
}

int slots_close(Slots *slots, uint32_t number) {
    Slot *slot = slot_at(slots, number);

    if (!slot)
        return -ENOENT;
    slots->used--;
    slots->ring_bytes -= slot->event.ring_bytes;
    slots->lowest = MIN(slots->lowest, (size_t)number);
    slot_done(slot);
    return 0;
}

int slots_next(const Slots *slots, uint32_t number, uint32_t *ret_slot, KeeperEventData *ret,
               int *ret_fd) {
    for (size_t i = number == KEEPER_NO_SLOT ? 0 : (size_t)number + 1; i < slots->n; i++)
        if (slots->slots[i].fd >= 0) {
            *ret_slot = (uint32_t)i;
            *ret = slots->slots[i].event;
            *ret_fd = slots->slots[i].fd;
            return 1;
        }
    return 0;
}

uint32_t slots_count(const Slots *slots) {
    return slots->used;
}
