/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/loss.h"

#include <errno.h>
#include <unistd.h>

#include "perfdata/record/record.h"
#include "util/clock.h"

/*
 * What was not recorded. For each event the kernel counts the records that did not fit into the
 * ring, and read() returns the count (6.0 on); older kernels write a LOST record before the next
 * record that fits. Rings of an earlier recorder are counted by their LOST records too: the count
 * of read() starts at the beginning, and nobody knows how much of it was reported. A throttled
 * event has a record in the ring when it stops and when it goes on.
 */

enum {
    READ_BYTES_MAX = 16 * 1024,
    /* Of a ring: what two records take at most, one that interrupts another. */
    LEAST_ROOM = 128 * 1024,
};

static Counter *loss_counter_by_id(CpuRing *ring, uint64_t id) {
    for (size_t i = 0; i < ring->n_counters; i++)
        if (ring->counters[i].id == id)
            return &ring->counters[i];
    return NULL;
}

static void loss_note_throttle(CpuRing *ring, const PdThrottle *throttle, bool ends) {
    Counter *counter = loss_counter_by_id(ring, throttle->id);

    if (!counter)
        return;
    if (!ends) {
        ring->set->counts.throttles++;
        counter->throttled_at = MAX(throttle->time, (uint64_t)1);
    } else if (counter->throttled_at) {
        if (throttle->time > counter->throttled_at)
            ring->set->counts.throttled_ns += throttle->time - counter->throttled_at;
        counter->throttled_at = 0;
    }
    ring->set->counts.throttled_at_ns = clock_monotonic_ns();
}

static void loss_note_lost(CpuRing *ring, const PdLost *lost) {
    Counter *counter = loss_counter_by_id(ring, lost->id);

    if (counter)
        counter = ring->set->ops->reporter(ring, counter);
    if (ring->lost_by_records)
        (counter ?: &ring->counters[0])->lost += lost->lost;
}

void loss_notice(CpuRing *ring, Bytes records) {
    for (size_t at = 0; at < records.size;) {
        PdRecord record = pd_record_at(records.data + at, false);
        PdBody body;

        at += record.size;
        if (record.type != PD_RECORD_THROTTLE && record.type != PD_RECORD_UNTHROTTLE &&
            record.type != PD_RECORD_LOST)
            continue;
        if (pd_record_parse(&record, NULL, &body) < 0)
            continue;
        if (record.type == PD_RECORD_LOST)
            loss_note_lost(ring, &body.lost);
        else
            loss_note_throttle(ring, &body.throttle, record.type == PD_RECORD_UNTHROTTLE);
    }
}

int loss_parse(uint64_t read_format, Bytes bytes, uint64_t id, uint64_t *ret) {
    Cursor c = cursor_of(bytes.data, bytes.size, false);
    bool is_group = read_format & PD_FORMAT_GROUP;
    uint64_t n = is_group ? cursor_u64(&c) : 1, found_id = 0, lost = 0;

    if (!(read_format & PD_FORMAT_LOST))
        return -EBADMSG;
    if (!is_group)
        (void)cursor_u64(&c);
    if (read_format & PD_FORMAT_TOTAL_TIME_ENABLED)
        (void)cursor_u64(&c);
    if (read_format & PD_FORMAT_TOTAL_TIME_RUNNING)
        (void)cursor_u64(&c);
    for (uint64_t i = 0; i < n && !c.failed; i++) {
        if (is_group)
            (void)cursor_u64(&c);
        found_id = read_format & PD_FORMAT_ID ? cursor_u64(&c) : id;
        lost = cursor_u64(&c);
        if (!c.failed && found_id == id) {
            *ret = lost;
            return 0;
        }
    }
    return -EBADMSG;
}

void loss_read(CpuRing *ring, Counter *counter) {
    uint64_t words[READ_BYTES_MAX / sizeof(uint64_t)];
    ssize_t n;

    if (ring->lost_by_records)
        return;
    n = read(counter->fd, words, sizeof(words));
    if (n > 0)
        (void)loss_parse(counter->read_format,
                         (Bytes){.data = (const uint8_t *)words, .size = (size_t)n}, counter->id,
                         &counter->lost);
}

static bool loss_is_nearly_full(const CpuRing *ring) {
    return ring_head(&ring->ring) - ring_tail(&ring->ring) + LEAST_ROOM > ring->ring.size;
}

void loss_note_space(CpuRing *ring) {
    ring->was_nearly_full |= loss_is_nearly_full(ring);
}

/* Reading a counter interrupts its CPU. Between two moments at which space is given back a ring
 * only fills up, so those moments show whether a record may have found no room. */
static bool loss_is_possible(CpuRing *ring) {
    bool was_nearly_full = ring->was_nearly_full;

    ring->was_nearly_full = loss_is_nearly_full(ring);
    return was_nearly_full || ring->was_nearly_full;
}

static int loss_report_ring(CpuRing *ring, SamplerLoss fn, void *userdata) {
    bool is_possible = loss_is_possible(ring);

    for (size_t i = 0; i < ring->n_counters; i++) {
        Counter *counter = &ring->counters[i];
        Loss loss = {.session = ring->set->session,
                     .is_data = ring->set->kind == TAG_DATA,
                     .id = counter->id,
                     .cpu = ring->cpu};
        int r;

        if (is_possible)
            loss_read(ring, counter);
        if (counter->lost <= counter->reported)
            continue;
        loss.lost = counter->lost - counter->reported;
        counter->reported = counter->lost;
        ring->set->counts.lost += loss.lost;
        ring->set->counts.lost_at_ns = clock_monotonic_ns();
        r = fn(userdata, &loss);
        if (r < 0)
            return r;
    }
    return 0;
}

int loss_report(const RingSet *set, SamplerLoss fn, void *userdata) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < set->n; i++)
        r = loss_report_ring(set->rings[i], fn, userdata);
    return r;
}
