/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "perfdata/record/record.h"

/*
 * The consumer's half of the perf ring protocol: the kernel moves head, which is read with acquire;
 * we move tail and store it with release when the bytes are no longer needed. The kernel does not
 * write between the two, so records are handed out in place. Only the kernel writes the control
 * page, but a wrong head would do no harm: no more than the size of the ring is read.
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

uint64_t ring_tail(const Ring *ring) {
    const struct perf_event_mmap_page *control = ring->memory;

    return __atomic_load_n(&control->data_tail, __ATOMIC_RELAXED);
}

void ring_give_back(Ring *ring, uint64_t position) {
    struct perf_event_mmap_page *control = ring->memory;

    __atomic_store_n(&control->data_tail, position, __ATOMIC_RELEASE);
}

static const uint8_t *ring_data(const Ring *ring) {
    return (const uint8_t *)ring->memory + sysconf(_SC_PAGESIZE);
}

int scratch_init(Scratch *scratch, size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return -errno;
    if (madvise(memory, size, MADV_DONTDUMP) < 0) {
        int r = -errno;

        (void)munmap(memory, size);
        return r;
    }
    *scratch = (Scratch){.data = memory, .size = size};
    return 0;
}

void scratch_done(Scratch *scratch) {
    if (scratch->data)
        (void)munmap(scratch->data, scratch->size);
    *scratch = (Scratch){};
}

static int ring_join(const Ring *ring, uint64_t from, uint64_t n, const Scratch *scratch,
                     RingSlice *ret) {
    uint64_t at = from & (ring->size - 1), first = MIN(n, ring->size - at);

    if (n > scratch->size)
        return -EMSGSIZE;
    memcpy(scratch->data, ring_data(ring) + at, first);
    memcpy(scratch->data + first, ring_data(ring), n - first);
    ret->records = (Bytes){.data = scratch->data, .size = n};
    ret->end = from + n;
    return 0;
}

/* The kernel wrote the records on another CPU, and the headers lie too far apart for the CPU to see
 * a pattern: it would wait for each of them. */
static void ring_fetch(const uint8_t *p, uint16_t size) {
    enum { LINE = 64, AHEAD = 512, MOST = 512 /* of a record: of a copy of a stack, the begin */ };

    for (unsigned i = 0; i < MIN(size, (unsigned)MOST); i += LINE)
        __builtin_prefetch(p + AHEAD + i);
}

/* Headers are aligned to 8 bytes and so is the end of the ring: a header never wraps. */
int ring_slice(const Ring *ring, uint64_t from, uint64_t to, uint64_t limit, const Scratch *scratch,
               RingSlice *ret) {
    uint64_t at = from & (ring->size - 1), left = to - from, room = ring->size - at, n = 0;
    const uint8_t *p = ring_data(ring) + at;
    RingSlice slice = {};

    if (left > ring->size || (from & 7) != 0 || left == 0)
        return -EBADMSG;
    while (n < MIN(left, room)) {
        uint32_t type = load_u32(p + n, false);
        uint16_t size = load_u16(p + n + 6, false);

        if (size < PD_RECORD_HEADER_SIZE || (size & 7) != 0 || size > left - n)
            return -EBADMSG;
        if (n > 0 && (size > room - n || size > limit - n))
            break;
        ring_fetch(p + n, size);
        slice.types |= type < 64 ? 1ULL << type : 0;
        n += size;
        if (n >= limit)
            break;
    }
    slice.end = from + n;
    slice.records = (Bytes){.data = p, .size = n};
    if (n > room) {
        int r = ring_join(ring, from, n, scratch, &slice);

        if (r < 0)
            return r;
    }
    *ret = slice;
    return 0;
}
