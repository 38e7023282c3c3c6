/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Self-contained HTML: pages with their data, styles and scripts in one file, which need no network
 * and no server. Scripts and styles are files of this room that the build embeds.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

typedef int (*PageSink)(const void *data, size_t size, void *arg);

typedef struct PageInput {
    const Profile *profile; /* with PROFILE_TIME among its keys for heat maps */
    const FrameNames *names;
    uint32_t event; /* the event that is shown; PROFILE_NONE: all, by counts */
    bool by_period;
    const char *title;    /* the host, or the name of the recording */
    const char *subtitle; /* window, samples, completeness: one sentence; may be NULL */
} PageInput;

typedef struct PageFlameOptions {
    bool by_address;         /* keep frames of one name but different addresses apart */
    bool icicle;             /* the view that the page starts with */
    const PageInput *before; /* of a difference: what `input` is compared with; NULL: none */
} PageFlameOptions;

int page_flame_graph(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                     void *arg);
/* A picture without a script. */
int page_flame_svg(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                   void *arg);
int page_heat_map(const PageInput *input, PageSink sink, void *arg);

/* One fact of an incident page, already a sentence or a value: "Kernel", "6.1.0-28-amd64". */
typedef struct PageFact {
    const char *name, *value;
} PageFact;

typedef struct PageIncident {
    PageInput input; /* with PROFILE_TIME, PROFILE_COMM and PROFILE_UNIT among its keys */
    const PageFact *facts;
    size_t n_facts;
    const char *const *changes; /* sentences: what changed */
    size_t n_changes;
} PageIncident;

int page_incident(const PageIncident *incident, PageSink sink, void *arg);
