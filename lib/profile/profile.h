/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A profile: samples as weights of stacks. A cell has the samples of one stack with one set of
 * labels; labels are kept apart only for the keys that were asked for. What a frame is called is
 * not in here: that is FrameNames. The struct is open for reading; profile-builder.h fills it.
 */

#include "profile/frame-table.h"
#include "profile/stack-tree.h"
#include "profile/text-set.h"

typedef enum ProfileKey {
    PROFILE_EVENT, /* a number in events */
    PROFILE_COMM,  /* a text */
    PROFILE_PID,   /* a number, as it is */
    PROFILE_TID,
    PROFILE_CPU,
    PROFILE_CGROUP,    /* a text: the path of the control group */
    PROFILE_UNIT,      /* a text: the systemd unit by that path; empty: none */
    PROFILE_CONTAINER, /* a text: the container by that path; empty: none */
    PROFILE_TIME,      /* the number of a span of bucket_ns since start_ns */
    PROFILE_KEYS,
} ProfileKey;

/* The value of a key that is not kept apart, or that a sample does not have. */
#define PROFILE_NONE UINT32_MAX

static inline unsigned profile_key_bit(ProfileKey key) {
    return 1U << key;
}

typedef struct ProfileLabel {
    uint32_t values[PROFILE_KEYS];
} ProfileLabel;

typedef struct ProfileCell {
    uint32_t label; /* its number in labels */
    uint32_t stack; /* a node of stacks */
    uint64_t samples;
    uint64_t period; /* the sum of the samples' periods, in units of their event */
} ProfileCell;

/* One event of the recordings, by name. */
typedef struct ProfileEvent {
    uint32_t name;  /* a text */
    bool is_time;   /* its period is in nanoseconds: cpu-clock, task-clock */
    bool by_period; /* it samples once in a fixed number of events, not at a frequency */
    uint64_t rate;  /* that number, or the frequency in Hz; 0: not known */
    uint64_t samples, period;
    uint64_t lost; /* samples that the kernel says it dropped */
} ProfileEvent;

typedef struct Profile {
    unsigned keys; /* bits of the keys that are kept apart */
    FrameTable *frames;
    StackTree *stacks;
    TextSet *texts;
    ProfileEvent *events;
    size_t n_events;
    ProfileLabel *labels;
    size_t n_labels;
    ProfileCell *cells; /* each pair of label and stack once */
    size_t n_cells;

    uint64_t samples, lost;
    uint64_t left_out; /* samples that a filter left out */
    uint64_t folded;   /* samples whose rare stack was folded into FRAME_OTHER */
    /* Samples whose rare label was: of their values only PROFILE_EVENT is left, if it is a key. */
    uint64_t folded_labels;
    uint64_t broken; /* records that could not be read */

    /* Times are those of the recording; add real_offset for CLOCK_REALTIME, modulo 2^64. */
    uint64_t first_ns, last_ns; /* of the samples that count; first > last: there is none */
    /* Spans are longer than was asked for if there were too many labels or cells. */
    uint64_t start_ns, bucket_ns;
    uint64_t real_offset;
    bool real_known;
} Profile;

Profile *profile_free(Profile *profile);
DEFINE_CLEANUP(Profile *, profile_free);
