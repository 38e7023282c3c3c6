/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sweep/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "capture/ring/loss.h"
#include "perfdata/event/format.h"
#include "perfdata/record/record.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The sweep. A sample may leave only after the side-band that it needs to be resolved, and a sample
 * that is in a ring now needs no side-band that comes later. So the sweep notes the heads of all
 * sample rings first, then takes side-band, up to heads that it reads after that, then the samples
 * up to the noted heads. Between two slices the state is in the rings: the positions taken and
 * noted. So rings may come and go between slices.
 *
 * Samples stay in the ring when they are taken; their room is given back when the owner has written
 * them, at once if they are in memory that outlives the recorder, or earlier if the ring would
 * become too small for new records.
 */

enum {
    SIDE_BAND_MARKS = 2 * RING_MARKS,
    PACE_NS = 20000000,
    MUCH_SHARE = 4, /* of a ring: less than what starts a sweep, and half of what may be kept */
};

static const char *sweep_ring_owner(const CpuRing *ring) {
    return ring->set->session            ? ring->set->session->config.name
           : ring->set->kind == TAG_DATA ? "data mappings"
                                         : "side-band";
}

/* The bytes between tail and head are no records, so all of them are dropped. */
static void sweep_reset(CpuRing *ring, uint64_t head) {
    static LogRate rate = {.interval_ns = 10 * NS_PER_SECOND, .burst = 5};

    log_limited(&rate, LOG_LEVEL_WARNING, 0,
                "The ring of CPU %u for '%s' held no records between %" PRIu64 " and %" PRIu64
                ", dropping them; another program that maps it may have written there",
                ring->cpu, sweep_ring_owner(ring), ring->taken, head);
    ring->taken = ring->noted = head;
    ring->n_marks = 0;
    ring->pace_ns = 0;
    for (size_t i = 0; i < RING_MARKS; i++)
        ring->marks[i] = head;
    ring->was_nearly_full = true;
    ring_give_back(&ring->ring, head);
}

/* Whether the ring would be full within a second, at the pace since the last measurement. */
static void sweep_note_pace(CpuRing *ring, uint64_t head, uint64_t now_ns) {
    uint64_t passed_ns = now_ns - ring->pace_ns;

    if (passed_ns < PACE_NS)
        return;
    ring->fills_fast =
        ring->pace_ns > 0 && (head - ring->pace_head) * NS_PER_SECOND / passed_ns > ring->ring.size;
    ring->pace_ns = now_ns;
    ring->pace_head = head;
}

static void sweep_note_head(CpuRing *ring, uint64_t now_ns) {
    uint64_t head = ring_head(&ring->ring);

    if (head - ring->taken > ring->ring.size)
        sweep_reset(ring, head);
    sweep_note_pace(ring, head, now_ns);
    ring->noted = head;
}

static void sweep_note_heads(const RingSet *set, uint64_t now_ns) {
    for (size_t i = 0; i < set->n; i++)
        sweep_note_head(set->rings[i], now_ns);
}

static void sweep_give_back(CpuRing *ring, uint64_t position) {
    uint64_t tail = ring_tail(&ring->ring);

    if (position <= tail || position > ring->taken)
        return;
    loss_note_space(ring);
    ring_give_back(&ring->ring, position);
}

/* Half of the ring, if it holds seconds; if it fills fast, room for new records is worth more than
 * records for the next recorder. */
static uint64_t sweep_most_to_keep(const CpuRing *ring) {
    return ring->fills_fast ? ring->ring.size / 8 : ring->ring.size / 2;
}

/* Gives back the oldest sweeps first, as few as free enough of the ring. */
static void sweep_give_back_early(CpuRing *ring) {
    uint64_t most = sweep_most_to_keep(ring);

    for (size_t i = 0; i < ring->set->session->n_sweeps; i++)
        if (ring->taken - ring_tail(&ring->ring) > most)
            sweep_give_back(ring, ring->marks[i]);
    if (ring->taken - ring_tail(&ring->ring) > most)
        sweep_give_back(ring, ring->taken);
}

/*
 * Of side-band the newer half of the ring stays, for the recorder after one that died: what a
 * process did may not have been written yet because nobody sampled it, and the process may be gone
 * when /proc is read. Marks are ends of records that lie a sixteenth apart.
 */
static void sweep_give_back_side_band(CpuRing *ring) {
    uint64_t half = ring->ring.size / 2;
    size_t n = ring->n_marks;

    if (n == 0 || ring->taken - ring->marks[n - 1] >= ring->ring.size / SIDE_BAND_MARKS) {
        if (n == RING_MARKS)
            memmove(ring->marks, ring->marks + 1, --n * sizeof(*ring->marks));
        ring->marks[n++] = ring->taken;
    }
    while (n > 0 && ring->taken - ring_tail(&ring->ring) > half) {
        sweep_give_back(ring, ring->marks[0]);
        memmove(ring->marks, ring->marks + 1, --n * sizeof(*ring->marks));
    }
    if (ring->taken - ring_tail(&ring->ring) > half)
        sweep_give_back(ring, ring->taken);
    ring->n_marks = n;
}

static bool sweep_is_data(const PdRecord *record) {
    return record->type == PD_RECORD_MMAP2 && (record->misc & PD_MISC_MMAP_DATA);
}

static int sweep_hand_out_run(const CpuRing *ring, Bytes records, const SamplerSinks *sinks) {
    Batch batch = {.cpu = ring->cpu, .records = records};

    return records.size > 0 ? sinks->on_batch(sinks->userdata, &batch) : 0;
}

/* The kernel lets the event of data mappings record mappings of code as well. They are in the ring
 * of side-band already, and are skipped here. */
static int sweep_hand_out_data(const CpuRing *ring, Bytes records, const SamplerSinks *sinks) {
    size_t from = 0, at = 0;
    int r = 0;

    while (r == 0 && at < records.size) {
        PdRecord record = pd_record_at(records.data + at, false);

        if (!sweep_is_data(&record)) {
            r = sweep_hand_out_run(ring, (Bytes){records.data + from, at - from}, sinks);
            from = at + record.size;
        }
        at += record.size;
    }
    return r == 0 ? sweep_hand_out_run(ring, (Bytes){records.data + from, at - from}, sinks) : r;
}

static int sweep_drain_slice(CpuRing *ring, uint64_t limit, const SamplerSinks *sinks) {
    Batch batch = {.session = ring->set->session,
                   .cpu = ring->cpu,
                   .is_first = ring_tail(&ring->ring) == ring->taken};
    RingSlice slice;
    int r = ring_slice(&ring->ring, ring->taken, ring->noted, limit, &ring->set->sampler->scratch,
                       &slice);

    if (r == -EBADMSG) {
        sweep_reset(ring, ring->noted);
        return 0;
    }
    if (r < 0)
        return r;
    if (slice.types &
        (1ULL << PD_RECORD_THROTTLE | 1ULL << PD_RECORD_UNTHROTTLE | 1ULL << PD_RECORD_LOST))
        loss_notice(ring, slice.records);
    if (ring->set->session && ring->set->ops->unify)
        r = ring->set->ops->unify(ring, &slice.records);
    if (r < 0)
        return r;
    batch.records = slice.records;
    r = ring->set->kind == TAG_DATA ? sweep_hand_out_data(ring, slice.records, sinks)
                                    : sinks->on_batch(sinks->userdata, &batch);
    if (r < 0)
        return r;
    ring->set->counts.bytes += slice.records.size;
    ring->taken = slice.end;
    if (ring->set->session && r > 0 && batch.is_first)
        sweep_give_back(ring, ring->taken);
    else if (ring->set->session)
        sweep_give_back_early(ring);
    else
        sweep_give_back_side_band(ring);
    return 0;
}

/* 1 when all is taken, 0 when the budget is used up. */
static int sweep_drain_set(const RingSet *set, uint64_t *left, const SamplerSinks *sinks) {
    for (size_t i = 0; i < set->n; i++) {
        CpuRing *ring = set->rings[i];

        while (ring->taken != ring->noted) {
            uint64_t before = ring->taken;
            int r;

            if (*left == 0)
                return 0;
            r = sweep_drain_slice(ring, MIN(*left, (uint64_t)SWEEP_BATCH_BYTES), sinks);
            if (r < 0)
                return r;
            *left -= MIN(*left, ring->taken - before);
        }
    }
    return 1;
}

/* Takes the records for the history; those that all sessions need come first. */
static void sweep_note_shared(Sampler *sampler) {
    uint64_t now_ns = clock_monotonic_ns();

    sweep_note_heads(&sampler->side_band, now_ns);
    sweep_note_heads(&sampler->data, now_ns);
}

static int sweep_drain_shared(Sampler *sampler, uint64_t *left, const SamplerSinks *sinks) {
    int r = sweep_drain_set(&sampler->side_band, left, sinks);

    return r > 0 ? sweep_drain_set(&sampler->data, left, sinks) : r;
}

static void sweep_begin(Sampler *sampler) {
    uint64_t now_ns = clock_monotonic_ns();

    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        sweep_note_heads(&s->rings, now_ns);
    /* No sample of the sweep is later than this, and all side-band before it is in the rings. */
    sampler->start_ns = clock_monotonic_ns();
    sweep_note_shared(sampler);
    sampler->phase = SWEEP_SIDE_BAND;
}

static int sweep_on(Sampler *sampler, uint64_t left, const SamplerSinks *sinks) {
    int r;

    if (sampler->phase == SWEEP_SIDE_BAND) {
        r = sweep_drain_shared(sampler, &left, sinks);
        if (r <= 0)
            return r;
        sweep_note_shared(sampler);
        sampler->phase = SWEEP_SIDE_BAND_LATE;
    }
    if (sampler->phase == SWEEP_SIDE_BAND_LATE) {
        r = sweep_drain_shared(sampler, &left, sinks);
        if (r <= 0)
            return r;
        r = sinks->on_side_band_end(sinks->userdata, sampler->start_ns);
        if (r < 0)
            return r;
        sampler->phase = SWEEP_SAMPLES;
    }
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        r = sweep_drain_set(&s->rings, &left, sinks);
        if (r <= 0)
            return r;
    }
    sampler->phase = SWEEP_NONE;
    sampler->n_sweeps++;
    return 1;
}

int sampler_sweep(Sampler *sampler, uint64_t budget_bytes, const SamplerSinks *sinks) {
    uint64_t began_ns = clock_monotonic_ns();
    int r;

    if (sampler->phase == SWEEP_NONE)
        sweep_begin(sampler);
    r = sweep_on(sampler, MAX(budget_bytes, (uint64_t)1), sinks);
    sampler->drain_ns += clock_monotonic_ns() - began_ns;
    return r;
}

bool sampler_is_sweeping(const Sampler *sampler) {
    return sampler->phase != SWEEP_NONE;
}

/* When the owner writes slowly, the newest sweeps share a mark: the older of them then counts as
 * written only with the newer one. */
void sampler_note_sweep(SamplerSession *session, uint64_t sweep) {
    size_t i = MIN(session->n_sweeps, (size_t)RING_MARKS - 1);

    session->sweeps[i] = sweep;
    session->n_sweeps = i + 1;
    for (size_t k = 0; k < session->rings.n; k++)
        session->rings.rings[k]->marks[i] = session->rings.rings[k]->taken;
}

void sampler_written(SamplerSession *session, uint64_t sweep) {
    size_t n = 0;

    while (n < session->n_sweeps && session->sweeps[n] <= sweep)
        n++;
    if (n == 0)
        return;
    session->n_sweeps -= n;
    memmove(session->sweeps, session->sweeps + n, session->n_sweeps * sizeof(*session->sweeps));
    for (size_t i = 0; i < session->rings.n; i++) {
        CpuRing *ring = session->rings.rings[i];

        sweep_give_back(ring, ring->marks[n - 1]);
        memmove(ring->marks, ring->marks + n, session->n_sweeps * sizeof(*ring->marks));
    }
}

bool sampler_holds_much(const SamplerSession *session) {
    bool holds = false;

    for (size_t i = 0; !holds && i < session->rings.n; i++) {
        const CpuRing *ring = session->rings.rings[i];

        holds = ring->taken - ring_tail(&ring->ring) > ring->ring.size / MUCH_SHARE;
    }
    return holds;
}
