/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is known about a segment without reading it: STEM.json next to a file, manifest.json in a
 * folder. It is written when the segment begins (so that a recovery knows the boot and the clocks),
 * and again before the segment gets its final name. Times of samples are in CLOCK_MONOTONIC.
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
    MANIFEST_TEXT_MAX = 256, /* includes the NUL */
    MANIFEST_BYTES_MAX = 8 << 20,
};

typedef enum Completeness { SEGMENT_IS_OPEN, COMPLETE, RECOVERED, DAMAGED } Completeness;

/*
 * An index entry: from `offset` of its file up to the next entry of the same file and kind, all
 * data of that kind lies within these times and has `raw` bytes before compression. An entry is one
 * frame, or several frames in an index that was thinned.
 */
typedef struct ManifestFrame {
    uint64_t offset, raw, first_ns, last_ns;
    uint32_t file; /* 0: the file or `data`; N + 1: data.N */
    StoreKind kind;
} ManifestFrame;

/* Splits `lost` by CPU and cause; what exceeds the bound is only in the sum. */
typedef struct ManifestLoss {
    uint32_t cpu;
    StoreCause cause;
    uint64_t samples;
} ManifestLoss;

typedef struct Manifest {
    char session[CONFIG_NAME_MAX];
    uint64_t sequence;
    char boot[MANIFEST_TEXT_MAX]; /* "": unknown */
    char host[MANIFEST_TEXT_MAX];
    char recorder[MANIFEST_TEXT_MAX]; /* the program that wrote it, with version */
    Completeness completeness;
    char damage[MANIFEST_TEXT_MAX]; /* what a recovery found; "": nothing */
    bool directory;
    bool sensitive;    /* holds other users' memory */
    bool synchronised; /* the wall clock was synchronised at the end */

    uint64_t first_ns, last_ns; /* of samples; both 0: there are none */
    uint64_t samples, raw_bytes, stored_bytes;
    uint64_t lost, throttled_ns, throttles, inferred, dropped;
    uint64_t unidentified; /* mapped files without a build id */
    /* What recording itself cost: time of the main thread, of the process, and memory of process
     * and queue. */
    uint64_t sweeps, drain_ns, cpu_ns, memory_bytes, queue_high_bytes;
    /* Number of samples times the value of one sample of the first event: nanoseconds if it has a
     * frequency, else its period. */
    uint64_t weight;
    StoreStacks stacks;

    ClockAnchor *anchors;
    size_t n_anchors;
    ManifestLoss *losses;
    size_t n_losses;
    /* In CLOCK_MONOTONIC. covered is false if it is unknown: an earlier version wrote the manifest,
     * or it was rebuilt from the data. */
    bool covered;
    PdCoverage coverage;
    PdGapReason after; /* why recording stopped after the segment, if it did */
    uint64_t round_ns; /* when rebuilt from the data: time of the last sample before the last
                        * round */
    char (*events)[MANIFEST_TEXT_MAX];
    size_t n_events;
    uint8_t cpus[MANIFEST_CPUS_MAX / 8]; /* a bit for each CPU with samples */
    ManifestFrame *frames;
    size_t n_frames;
    unsigned n_thinned; /* how often the index was thinned; not saved */
} Manifest;

int manifest_new(Manifest **ret);
Manifest *manifest_free(Manifest *manifest);
DEFINE_CLEANUP(Manifest *, manifest_free);

/* These functions keep the bounds above: the last anchor is replaced, excess events and losses are
 * left out, the index is thinned. They can only fail with -ENOMEM. */
int manifest_add_anchor(Manifest *manifest, const ClockAnchor *anchor);
/* Also adds to the sum. */
int manifest_add_loss(Manifest *manifest, uint32_t cpu, StoreCause cause, uint64_t samples);
int manifest_add_event(Manifest *manifest, const char *name);
int manifest_add_frame(Manifest *manifest, const ManifestFrame *frame);
void manifest_add_cpu(Manifest *manifest, uint32_t cpu);
bool manifest_has_cpu(const Manifest *manifest, uint32_t cpu);
/* Adds to the number of samples and widens the span. */
void manifest_add_samples(Manifest *manifest, uint64_t n, uint64_t first_ns, uint64_t last_ns);

/* Convert between the clock of the samples and wall-clock time with the anchors; 0 if there is no
 * anchor. */
uint64_t manifest_real_ns(const Manifest *manifest, uint64_t monotonic_ns);
uint64_t manifest_monotonic_ns(const Manifest *manifest, uint64_t real_ns);
/* What it covers, in wall-clock time; *ret is overwritten. -ENODATA: unknown. */
int manifest_real_coverage(const Manifest *manifest, PdCoverage *ret);
/* Copies what `from`, a later state of the same manifest, has in addition. */
int manifest_follow(Manifest *manifest, const Manifest *from);

/* In manifest-codec.c: */
int manifest_encode(const Manifest *manifest, Buffer *out);
/* Strict: -EBADMSG for anything that manifest_encode() cannot have written, except members that a
 * later version may add. */
int manifest_decode(Bytes json, Manifest **ret);

/* In manifest-file.c: */
/* Opens it for reading; returns a descriptor or a negative errno. */
int manifest_open(int folder, const SegmentName *name, bool directory);
/* Writes the manifest of a segment in a session's folder. */
int manifest_write(int folder, const SegmentName *name, const Manifest *manifest);
/* -EBADMSG also if it describes another segment. */
int manifest_read(int folder, const SegmentName *name, bool directory, const char *session,
                  Manifest **ret);
