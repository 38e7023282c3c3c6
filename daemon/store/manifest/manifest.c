/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/manifest/manifest.h"

#include <errno.h>
#include <stdio.h>

#include "util/array.h"

/*
 * The struct in memory and the functions that extend it. manifest-codec.c converts it to JSON and
 * back, manifest-file.c reads and writes its file, manifest-rebuild.c makes it from the data of a
 * segment.
 */

int manifest_new(Manifest **ret) {
    Manifest *manifest = calloc(1, sizeof(*manifest));

    if (!manifest)
        return -ENOMEM;
    *ret = manifest;
    return 0;
}

Manifest *manifest_free(Manifest *manifest) {
    if (!manifest)
        return NULL;
    free(manifest->anchors);
    free(manifest->losses);
    pd_coverage_done(&manifest->coverage);
    free(manifest->events);
    free(manifest->frames);
    free(manifest);
    return NULL;
}

int manifest_add_anchor(Manifest *manifest, const ClockAnchor *anchor) {
    ClockAnchor *a = manifest->n_anchors < MANIFEST_ANCHORS_MAX
                         ? array_grow(&manifest->anchors, &manifest->n_anchors)
                         : &manifest->anchors[manifest->n_anchors - 1];

    if (!a)
        return -ENOMEM;
    *a = *anchor;
    return 0;
}

int manifest_add_event(Manifest *manifest, const char *name) {
    char(*event)[MANIFEST_TEXT_MAX];

    if (manifest->n_events >= MANIFEST_EVENTS_MAX)
        return 0;
    event = array_grow(&manifest->events, &manifest->n_events);
    if (!event)
        return -ENOMEM;
    snprintf(*event, sizeof(*event), "%s", name);
    return 0;
}

int manifest_add_loss(Manifest *manifest, uint32_t cpu, StoreCause cause, uint64_t samples) {
    ManifestLoss *loss = NULL;

    manifest->lost += samples;
    if (cpu >= MANIFEST_CPUS_MAX)
        return 0;
    for (size_t i = 0; !loss && i < manifest->n_losses; i++)
        if (manifest->losses[i].cpu == cpu && manifest->losses[i].cause == cause)
            loss = &manifest->losses[i];
    if (!loss && manifest->n_losses >= MANIFEST_LOSSES_MAX)
        return 0;
    if (!loss)
        loss = array_grow(&manifest->losses, &manifest->n_losses);
    if (!loss)
        return -ENOMEM;
    loss->cpu = cpu;
    loss->cause = cause;
    loss->samples += samples;
    return 0;
}

static void manifest_widen(ManifestFrame *frame, const ManifestFrame *by) {
    frame->raw += by->raw;
    frame->first_ns = MIN(frame->first_ns, by->first_ns);
    frame->last_ns = MAX(frame->last_ns, by->last_ns);
}

/* Merges every second entry of a file and kind into the one before it. */
static void manifest_thin_one(Manifest *manifest, uint32_t file, StoreKind kind) {
    ManifestFrame *last = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < manifest->n_frames; i++) {
        ManifestFrame *frame = &manifest->frames[i];
        bool mine = frame->file == file && frame->kind == kind;

        if (mine && last) {
            manifest_widen(last, frame);
            last = NULL;
            continue;
        }
        manifest->frames[kept] = *frame;
        if (mine)
            last = &manifest->frames[kept];
        kept++;
    }
    manifest->n_frames = kept;
}

static void manifest_thin(Manifest *manifest) {
    uint32_t last_file = 0;

    manifest->n_thinned++;
    for (size_t i = 0; i < manifest->n_frames; i++)
        last_file = MAX(last_file, manifest->frames[i].file);
    for (uint32_t file = 0; file <= last_file; file++) {
        manifest_thin_one(manifest, file, STORE_SIDE_BAND);
        manifest_thin_one(manifest, file, STORE_SAMPLES);
    }
}

int manifest_add_frame(Manifest *manifest, const ManifestFrame *frame) {
    if (manifest->n_frames >= MANIFEST_FRAMES_MAX)
        manifest_thin(manifest);
    if (!manifest->frames) {
        /* Allocate the maximum at once, because thinning leaves counts that array_grow() cannot
         * extend. */
        manifest->frames = calloc(MANIFEST_FRAMES_MAX, sizeof(*manifest->frames));
        if (!manifest->frames)
            return -ENOMEM;
    }
    manifest->frames[manifest->n_frames++] = *frame;
    return 0;
}

void manifest_add_cpu(Manifest *manifest, uint32_t cpu) {
    if (cpu < MANIFEST_CPUS_MAX)
        manifest->cpus[cpu / 8] |= (uint8_t)(1 << cpu % 8);
}

bool manifest_has_cpu(const Manifest *manifest, uint32_t cpu) {
    return cpu < MANIFEST_CPUS_MAX && manifest->cpus[cpu / 8] & 1 << cpu % 8;
}

void manifest_add_samples(Manifest *manifest, uint64_t n, uint64_t first_ns, uint64_t last_ns) {
    if (n == 0)
        return;
    manifest->first_ns = manifest->samples ? MIN(manifest->first_ns, first_ns) : first_ns;
    manifest->last_ns = MAX(manifest->last_ns, last_ns);
    manifest->samples += n;
}

static uint64_t manifest_anchor_ns(const ClockAnchor *anchor, bool is_real) {
    return is_real ? anchor->real_ns : anchor->monotonic_ns;
}

/* Between two anchors the clocks ran at the same rate. */
static uint64_t manifest_convert(const Manifest *manifest, uint64_t ns, bool to_real) {
    const ClockAnchor *a = manifest->anchors;
    uint64_t from, to;

    for (size_t i = 1; i < manifest->n_anchors; i++)
        if (manifest_anchor_ns(&manifest->anchors[i], !to_real) <= ns)
            a = &manifest->anchors[i];
    if (!a)
        return 0;
    from = manifest_anchor_ns(a, !to_real);
    to = manifest_anchor_ns(a, to_real);
    if (ns >= from)
        return to + MIN(ns - from, (uint64_t)INT64_MAX - to);
    return from - ns < to ? to - (from - ns) : 0;
}

uint64_t manifest_real_ns(const Manifest *manifest, uint64_t monotonic_ns) {
    return manifest_convert(manifest, monotonic_ns, true);
}

uint64_t manifest_monotonic_ns(const Manifest *manifest, uint64_t real_ns) {
    return manifest_convert(manifest, real_ns, false);
}

/* A segment ends when the clock is set, so one offset holds for the whole segment. */
int manifest_real_coverage(const Manifest *manifest, PdCoverage *ret) {
    uint64_t shift;
    int r;

    if (!manifest->covered || manifest->n_anchors == 0)
        return -ENODATA;
    shift = manifest->anchors[0].real_ns - manifest->anchors[0].monotonic_ns;
    r = pd_coverage_copy(&manifest->coverage, ret);
    if (r < 0)
        return r;
    pd_coverage_clip(ret);
    (void)pd_coverage_shift(ret, shift);
    return 0;
}

static int manifest_follow_lists(Manifest *manifest, const Manifest *from) {
    int r = 0;

    for (size_t i = manifest->n_anchors; r == 0 && i < from->n_anchors; i++)
        r = manifest_add_anchor(manifest, &from->anchors[i]);
    if (r == 0)
        r = pd_coverage_copy(&from->coverage, &manifest->coverage);
    for (size_t i = manifest->n_events; r == 0 && i < from->n_events; i++)
        r = manifest_add_event(manifest, from->events[i]);
    if (manifest->n_thinned != from->n_thinned)
        manifest->n_frames = 0;
    manifest->n_thinned = from->n_thinned;
    for (size_t i = manifest->n_frames; r == 0 && i < from->n_frames; i++)
        r = manifest_add_frame(manifest, &from->frames[i]);
    return r;
}

int manifest_follow(Manifest *manifest, const Manifest *from) {
    Manifest lists = *manifest;

    *manifest = *from;
    manifest->anchors = lists.anchors;
    manifest->n_anchors = lists.n_anchors;
    manifest->losses = lists.losses;
    manifest->n_losses = lists.n_losses;
    pd_coverage_done(&lists.coverage);
    manifest->coverage = (PdCoverage){};
    manifest->events = lists.events;
    manifest->n_events = lists.n_events;
    manifest->frames = lists.frames;
    manifest->n_frames = lists.n_frames;
    manifest->n_thinned = lists.n_thinned;
    return manifest_follow_lists(manifest, from);
}
