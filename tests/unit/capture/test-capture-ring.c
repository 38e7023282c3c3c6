/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "capture/ring/ring.h"
#include "perfdata/record/record.h"

#include "test.h"

/* A ring made by hand: memory laid out as the kernel does it, and a head that we move. */

enum { RING = 4096, RECORD = 48 };

typedef struct MadeRing {
    Ring ring;
    struct perf_event_mmap_page *control;
    uint8_t *data;
    uint64_t head;
    uint64_t n;
} MadeRing;

static MadeRing make_ring(uint64_t begin) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    MadeRing m = {.ring.size = RING, .head = begin};

    m.ring.memory =
        mmap(NULL, page + RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(m.ring.memory != MAP_FAILED);
    m.control = m.ring.memory;
    m.data = (uint8_t *)m.ring.memory + page;
    m.control->data_head = m.control->data_tail = begin;
    return m;
}

static Scratch make_scratch(void) {
    Scratch scratch = {};

    if (scratch_init(&scratch, 65536) < 0)
        abort();
    return scratch;
}

/* Records hold their number, again and again. */
static void put(MadeRing *m, uint16_t size, uint32_t type) {
    uint8_t record[RING] = {};

    for (size_t i = PD_RECORD_HEADER_SIZE; i + 8 <= size; i += 8)
        store_u64(record + i, m->n, false);
    store_u32(record, type, false);
    store_u16(record + 6, size, false);
    for (uint16_t i = 0; i < size; i++)
        m->data[(m->head + i) % RING] = record[i];
    m->head += size;
    m->n++;
    m->control->data_head = m->head;
}

static bool is_numbered(Bytes records, uint64_t *next) {
    for (size_t at = 0; at < records.size;) {
        PdRecord r = pd_record_at(records.data + at, false);

        if (r.size < 16 || r.size > records.size - at)
            return false;
        for (size_t i = PD_RECORD_HEADER_SIZE; i < r.size; i += 8)
            if (load_u64(r.data + i, false) != *next)
                return false;
        (*next)++;
        at += r.size;
    }
    return true;
}

TEST(slices_of_any_size_return_every_record_once) {
    static const uint64_t limits[] = {1, 40, 48, 100, 1000, UINT64_MAX};

    for (size_t k = 0; k < ARRAY_SIZE(limits); k++) {
        MadeRing m = make_ring(RING - 200);
        _cleanup_(scratch_done) Scratch scratch = make_scratch();
        uint64_t next = 0, at = m.head;

        for (unsigned i = 0; i < 4096 / 64; i++)
            put(&m, (uint16_t)(40 + i % 4 * 8), PD_RECORD_SAMPLE);
        while (at != m.head) {
            RingSlice slice;

            CHECK_OK(ring_slice(&m.ring, at, m.head, limits[k], &scratch, &slice));
            CHECK(slice.records.size > 0);
            CHECK(slice.records.size <= MAX(limits[k], 64UL));
            CHECK_EQ(slice.end, at + slice.records.size);
            CHECK_EQ(slice.types, 1ULL << PD_RECORD_SAMPLE);
            CHECK(is_numbered(slice.records, &next));
            at = slice.end;
        }
        CHECK_EQ(next, m.n);
        CHECK_EQ(ring_tail(&m.ring), (uint64_t)RING - 200);
        ring_done(&m.ring);
    }
}

TEST(a_record_that_wraps_is_joined) {
    MadeRing m = make_ring(RING - 8);
    _cleanup_(scratch_done) Scratch scratch = make_scratch();
    uint64_t from = m.head, next = 0;
    RingSlice slice;

    put(&m, RECORD, PD_RECORD_LOST);
    put(&m, RECORD, PD_RECORD_SAMPLE);
    CHECK_OK(ring_slice(&m.ring, from, m.head, 1000, &scratch, &slice));
    CHECK_EQ(slice.records.size, (size_t)RECORD);
    CHECK_EQ(slice.types, 1ULL << PD_RECORD_LOST);
    CHECK(is_numbered(slice.records, &next));
    CHECK(slice.records.data == scratch.data);
    CHECK_OK(ring_slice(&m.ring, slice.end, m.head, 1000, &scratch, &slice));
    CHECK(is_numbered(slice.records, &next));
    CHECK(slice.records.data != scratch.data);
    ring_done(&m.ring);
}

TEST(invalid_record_is_refused) {
    static const uint16_t sizes[] = {0, 4, 12, 4096, 65535};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        MadeRing m = make_ring(0);
        _cleanup_(scratch_done) Scratch scratch = make_scratch();
        RingSlice slice;

        put(&m, RECORD, PD_RECORD_SAMPLE);
        put(&m, RECORD, PD_RECORD_SAMPLE);
        store_u16(m.data + RECORD + 6, sizes[i], false);
        CHECK_EQ(ring_slice(&m.ring, 0, m.head, 1000, &scratch, &slice), -EBADMSG);
        ring_done(&m.ring);
    }
}

TEST(a_head_beyond_the_ring_is_refused) {
    MadeRing m = make_ring(0);
    _cleanup_(scratch_done) Scratch scratch = make_scratch();
    RingSlice slice;

    CHECK_EQ(ring_slice(&m.ring, 0, RING + 8, 1000, &scratch, &slice), -EBADMSG);
    CHECK_EQ(ring_slice(&m.ring, 8, 0, 1000, &scratch, &slice), -EBADMSG);
    CHECK_EQ(ring_slice(&m.ring, 4, 48, 1000, &scratch, &slice), -EBADMSG);
    ring_done(&m.ring);
}

TEST(giving_back_moves_the_tail) {
    MadeRing m = make_ring(RING - 24);

    put(&m, RECORD, PD_RECORD_SAMPLE);
    CHECK_EQ(ring_head(&m.ring), m.head);
    ring_give_back(&m.ring, m.head);
    CHECK_EQ(ring_tail(&m.ring), m.head);
    CHECK_EQ(m.control->data_tail, m.head);
    ring_done(&m.ring);
}

TEST_MAIN()
