/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a page is made of, see page.h. */

#include "profile/frame-names.h"
#include "profile/profile.h"

/* The keys of a profile that become boxes below its stacks. */
enum {
    PAGE_LABELS = 1U << PROFILE_UNIT | 1U << PROFILE_CONTAINER | 1U << PROFILE_CGROUP |
                  1U << PROFILE_COMM | 1U << PROFILE_PID | 1U << PROFILE_TID | 1U << PROFILE_CPU
};

typedef int (*PageSink)(const void *data, size_t size, void *arg);

typedef struct PageInput {
    const Profile *profile; /* with PROFILE_TIME among its keys for heat maps */
    const FrameNames *names;
    uint32_t event; /* the event that is shown; PROFILE_NONE: all, by counts */
    bool by_period;
    const char *title;    /* the host, or the name of the recording */
    int zone_min;         /* how far the clock of the texts is ahead of UTC, for the heat map */
    const char *subtitle; /* window, samples, completeness: one sentence; may be NULL */
} PageInput;

typedef struct PageFlameOptions {
    bool by_address;         /* keep frames of one name but different addresses apart */
    bool icicle;             /* the view that the page starts with */
    const PageInput *before; /* of a difference: what `input` is compared with; NULL: none */
} PageFlameOptions;

/* One fact of an incident page, already a sentence or a value: "Kernel", "6.1.0-28-amd64". */
typedef struct PageFact {
    const char *name, *value;
} PageFact;

typedef struct PageIncident {
    PageInput input; /* with PROFILE_TIME, PROFILE_COMM and PROFILE_UNIT among its keys */
    const PageFact *facts;
    size_t n_facts;
    const char *const *changes; /* sentences: what changed, or that it is not known */
    size_t n_changes;
} PageIncident;
