/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is known of a segment without reading it: STEM.json beside a file, manifest.json in a
 * folder. It is written when the segment is begun (so that a recovery knows the boot and the
 * clocks), and again before it takes its final name. Times of samples are by CLOCK_MONOTONIC.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "perfdata/feature/coverage.h"
#include "store/disk/anchor.h"
#include "store/disk/batch.h"
#include "store/disk/segment-name.h"
#include "util/buffer.h"
#include "util/bytes.h"
#include "util/macro.h"

enum {
    MANIFEST_FRAMES_MAX = 16384,
    MANIFEST_ANCHORS_MAX = 1024,
    MANIFEST_EVENTS_MAX = 1024,
    MANIFEST_LOSSES_MAX = 4096,
    MANIFEST_CPUS_MAX = 8192,
    MANIFEST_TEXT_MAX = 256, /* with its NUL */
    MANIFEST_BYTES_MAX = 8 << 20,
};

typedef enum Completeness { SEGMENT_IS_OPEN, COMPLETE, RECOVERED, DAMAGED } Completeness;

/*
 * An entry of the index: from `offset` of its file up to the next entry of the same file and kind,
 * whatever is of that kind lies within these times, and is `raw` bytes before compression. A frame
 * each, and several of them in an index that has been thinned.
 */
typedef struct ManifestFrame {
    uint64_t offset, raw, first_ns, last_ns;
    uint32_t file; /* 0: the file or `data`; N + 1: data.N */
    StoreKind kind;
} ManifestFrame;

/* Of `lost`, by where and why; what is beyond the bound is in the sum alone. */
typedef struct ManifestLoss {
    uint32_t cpu;
    StoreCause cause;
    uint64_t samples;
} ManifestLoss;

typedef struct Manifest {
    char session[CONFIG_NAME_MAX];
    uint64_t sequence;
    char boot[MANIFEST_TEXT_MAX]; /* "": not known */
    char host[MANIFEST_TEXT_MAX];
    char recorder[MANIFEST_TEXT_MAX]; /* who wrote it, with version */
    Completeness completeness;
    char damage[MANIFEST_TEXT_MAX]; /* what a recovery found, "" if nothing */
    bool directory;
    bool sensitive;    /* holds other users' memory */
    bool synchronised; /* the time of day was held for right at the end */

    uint64_t first_ns, last_ns; /* of samples; both 0 when there is none */
    uint64_t samples, raw_bytes, stored_bytes;
    uint64_t lost, throttled_ns, throttles, inferred, dropped;
    uint64_t unidentified; /* files whose mappings have no build id */
    /* What recording took, itself: of the main thread, of the process, and of the queue between. */
    uint64_t sweeps, drain_ns, cpu_ns, memory_bytes, queue_high_bytes;
    /* Samples times what one of the first event stands for: nanoseconds where it has a frequency,
     * else periods. */
    uint64_t weight;

    ClockAnchor *anchors;
    size_t n_anchors;
    ManifestLoss *losses;
    size_t n_losses;
    /* By CLOCK_MONOTONIC. Nobody noted it where covered is false: a version before this one wrote
     * the manifest, or it was made of the data alone. */
    bool covered;
    PdCoverage coverage;
    PdGapReason after; /* why nothing was recorded behind it, where nothing was */
    uint64_t round_ns; /* in one that was made of the data: of the samples before the last round */
    char (*events)[MANIFEST_TEXT_MAX];
    size_t n_events;
    uint8_t cpus[MANIFEST_CPUS_MAX / 8]; /* a bit for each that sampled */
    ManifestFrame *frames;
    size_t n_frames;
    unsigned n_thinned; /* how often the index was thinned; not kept on disk */
} Manifest;

int manifest_new(Manifest **ret);
Manifest *manifest_free(Manifest *manifest);
DEFINE_CLEANUP(Manifest *, manifest_free);

/* All keep within the bounds above: the last anchor is replaced, events and losses beyond are left
 * out, the index is thinned. -ENOMEM is all that fails. */
int manifest_add_anchor(Manifest *manifest, const ClockAnchor *anchor);
/* Into the sum too. */
int manifest_add_loss(Manifest *manifest, uint32_t cpu, StoreCause cause, uint64_t samples);
int manifest_add_event(Manifest *manifest, const char *name);
int manifest_add_frame(Manifest *manifest, const ManifestFrame *frame);
void manifest_add_cpu(Manifest *manifest, uint32_t cpu);
bool manifest_has_cpu(const Manifest *manifest, uint32_t cpu);
/* Counts samples in and widens the span. */
void manifest_add_samples(Manifest *manifest, uint64_t n, uint64_t first_ns, uint64_t last_ns);

/* The time of day of a moment of its samples' clock, and the other way round, by its anchors; 0
 * where it has none. */
uint64_t manifest_real_ns(const Manifest *manifest, uint64_t monotonic_ns);
uint64_t manifest_monotonic_ns(const Manifest *manifest, uint64_t real_ns);
/* What it covers, by the time of day; *ret is overwritten. -ENODATA: it is not known. */
int manifest_real_coverage(const Manifest *manifest, PdCoverage *ret);
/* Takes over what `from`, which is the same one later on, has more. */
int manifest_follow(Manifest *manifest, const Manifest *from);

/* manifest-codec.c */
int manifest_encode(const Manifest *manifest, Buffer *out);
/* Strict: -EBADMSG for whatever is not what manifest_encode() could have written, but for members
 * that a later version may add. */
int manifest_decode(Bytes json, Manifest **ret);

/* manifest-file.c */
/* Opens it for reading; negative errno. */
int manifest_open(int folder, const SegmentName *name, bool directory);
/* Of a segment in a session's folder. */
int manifest_write(int folder, const SegmentName *name, const Manifest *manifest);
/* -EBADMSG also when it speaks of another segment. */
int manifest_read(int folder, const SegmentName *name, bool directory, const char *session,
                  Manifest **ret);
