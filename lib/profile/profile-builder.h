/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes a profile of recordings, in one pass in order of time: side-band goes through a process
 * table, and each sample that the filter lets through becomes a weight of its stack. Memory is
 * bounded by the number of distinct stacks, not by the recordings; above the limit the rarest
 * stacks are folded into one frame FRAME_OTHER, and counted. Above the limit of labels, spans of
 * time become longer, and if that is not enough, rare labels lose their values and are counted.
 */

#include "perfdata/reader/reader.h"
#include "process/selection.h"
#include "profile/profile.h"
#include "unwind/unwind-table.h"

typedef struct ProfileFilter {
    Selection selection;
    const char *const *events; /* patterns as for fnmatch(); none: all */
    size_t n_events;
    uint64_t since_ns, until_ns; /* since <= time < until, times of the recording; 0, 0: all */
} ProfileFilter;

typedef struct ProfileOptions {
    unsigned keys;          /* bits of ProfileKey that labels keep apart */
    uint32_t stacks_max;    /* nodes of the tree of stacks; 0: 4 Mi */
    uint64_t bucket_ns;     /* for PROFILE_TIME; 0: a second; that of the profile may be longer */
    bool callers_in_branch; /* take the stack from the LBR where a sample has one and no chain */
    /* The unwind table of a mapped file, for samples with a copy of their stack (perf record
     * --call-graph dwarf). A table must live as long as the builder. A negative errno: there is
     * none. NULL: such stacks are not unwound. */
    int (*unwind_table)(const FrameMapping *mapping, const UnwindTable **ret, void *arg);
    void *unwind_arg;
    ProfileFilter filter; /* borrowed until the builder is freed */
} ProfileOptions;

typedef struct ProfileBuilder ProfileBuilder;

int profile_builder_new(const ProfileOptions *options, ProfileBuilder **ret);
ProfileBuilder *profile_builder_free(ProfileBuilder *builder);
DEFINE_CLEANUP(ProfileBuilder *, profile_builder_free);

/* Begins the next recording: process tables and events are those of one recording. The reader is
 * borrowed until the next call, or until the builder is freed. Nothing may have been read from it.
 */
int profile_builder_begin(ProfileBuilder *builder, PdReader *reader);
/* The difference of CLOCK_REALTIME from the clock of this recording, modulo 2^64; 0: it is not
 * known. That of a stream is known when its first sample has come. */
uint64_t profile_builder_real_offset(ProfileBuilder *builder);
/* The span of this recording and of later ones that counts, instead of that of the filter, since
 * recordings have different clocks. Call it before the first record. */
void profile_builder_set_window(ProfileBuilder *builder, uint64_t since_ns, uint64_t until_ns);
/* One record of it, in order of time; for callers that read a stream themselves. */
int profile_builder_feed(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp);
/* The rest of the recording at once: reads, orders and feeds all of its records. */
int profile_builder_read(ProfileBuilder *builder);

/* Hands the profile over and begins an empty one; the process table and what is known of the
 * recording stay, so that a stream can be cut into profiles. */
int profile_builder_take(ProfileBuilder *builder, Profile **ret);
