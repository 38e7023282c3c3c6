/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

/*
 * The consumer's half of the perf ring protocol: head is the kernel's and read with acquire, tail
 * is ours and stored with release after the bytes were copied out. The control page is written by
 * the kernel alone, but a head that lies would still be caught: never more than the ring is taken.
 */

int ring_init(Ring *ring, int event_fd, uint64_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory;

    assert(size >= page && (size & (size - 1)) == 0);
    memory = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, event_fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    *ring = (Ring){.memory = memory, .size = size};
    return 0;
}

void ring_done(Ring *ring) {
    if (ring->memory)
        (void)munmap(ring->memory, (size_t)sysconf(_SC_PAGESIZE) + ring->size);
    *ring = (Ring){};
}

uint64_t ring_head(const Ring *ring) {
    const struct perf_event_mmap_page *control = ring->memory;

    return __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
}

int ring_take(Ring *ring, uint64_t head, Buffer *out) {
    struct perf_event_mmap_page *control = ring->memory;
    const uint8_t *data = (const uint8_t *)ring->memory + sysconf(_SC_PAGESIZE);
    uint64_t tail = control->data_tail, n = head - tail;
    uint64_t at = tail & (ring->size - 1), first;

    if (n > ring->size)
        return -EBADMSG;
    first = MIN(n, ring->size - at);
    buffer_append(out, data + at, first);
    buffer_append(out, data, n - first);
    if (buffer_error(out) < 0)
        return buffer_error(out);
    __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
    return 0;
}
