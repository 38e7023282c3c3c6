/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the builder share. profile-builder.c takes records and hands profiles over;
 * builder-event.c keeps the events of the recording, builder-frame.c finds frames of addresses,
 * builder-chain.c makes stacks of call chains, builder-label.c makes labels, builder-cell.c counts,
 * and builder-fold.c makes room.
 */

#include "perfdata/order/order.h"
#include "process/table/table.h"
#include "profile/profile-builder.h"
#include "util/hash-index.h"

enum {
    NODES_DEFAULT = 4 << 20,
    NODES_MIN = 64,
    TEXT_BYTES_MAX = 256 << 20,
};

/* An event of the recording. */
typedef struct BuilderEvent {
    bool is_known, is_wanted;
    uint32_t number;        /* in the profile; UINT32_MAX: not there yet */
    uint64_t lost_in_rings; /* that LOST records say */
} BuilderEvent;

typedef struct BuilderGroup {
    uint64_t id;
    uint32_t cgroup, unit, container; /* texts; PROFILE_NONE: not known */
    bool is_wanted;
} BuilderGroup;

/* A frame that was looked up before; the index is by all that the result depends on. */
typedef struct FrameSlot {
    uint64_t version, address;
    uint32_t frame;
    uint8_t tag; /* cpumode and is_return, plus one; 0: free */
} FrameSlot;

typedef struct MappingSlot {
    uint64_t version, start; /* version 0: free */
    uint32_t mapping;
    FrameKind kind;
} MappingSlot;

/* A call chain that was looked up before, by the hash of all that it depends on. */
typedef struct ChainSlot {
    uint64_t hash, check; /* hash 0: free */
    uint32_t stack;
} ChainSlot;

/* Where an address is looked up. */
typedef struct FrameSpace {
    const ProcessMaps *maps; /* NULL: nothing is known */
    uint64_t version;        /* of maps; 0: NULL */
    uint32_t pid;
    unsigned cpumode;
} FrameSpace;

/* The last label, which most samples have again. */
typedef struct LabelCache {
    ProfileLabel label;
    uint32_t number;
    bool is_set;
} LabelCache;

struct ProfileBuilder {
    ProfileOptions options;
    uint64_t seed; /* of hashes */
    Profile *profile;
    size_t cells_max, labels_max;
    HashIndex by_event, by_label, by_cell;

    PdReader *reader;
    PdOrder *order; /* while profile_builder_read() runs */
    ProcessTable *table;
    BuilderEvent *events; /* by the index of PdEvent */
    size_t n_events;
    BuilderGroup *groups; /* by the id of the control group */
    HashIndex by_group;
    struct BuilderBuildIds *build_ids; /* of files, by name */
    uint64_t real_offset;              /* of the clock of the first recording */
    uint64_t time_shift;               /* to that clock, modulo 2^64 */
    bool has_clock;  /* real_offset of the profile is that of the first recording */
    bool has_totals; /* a tool wrote how many samples were lost in all */

    FrameSlot *frame_slots;
    MappingSlot *mapping_slots;
    ChainSlot *chain_slots;
    size_t n_chain_slots, n_chain_fills;
    uint32_t *chain_frames; /* of the stack that is being made */
    LabelCache last_label;
};

/* In builder-cell.c; -ENOSPC: a limit is reached. */
int builder_new_profile(const ProfileBuilder *builder, Profile **ret);
int builder_intern_label(ProfileBuilder *builder, const ProfileLabel *label, uint32_t *ret);
/* Adds the weights of a cell. */
int builder_add_cell(ProfileBuilder *builder, const ProfileCell *add);
/* The number of the frame of kind FRAME_OTHER. */
int builder_add_other_frame(FrameTable *frames, uint32_t *ret);

/* In builder-fold.c: half of each limit is free after it. All numbers change. */
int builder_fold(ProfileBuilder *builder);
/* In builder-lookup.c: forgets the numbers that lookups have remembered. */
void builder_forget_lookups(ProfileBuilder *builder);

/* In builder-event.c: */
/* NULL: no memory. */
BuilderEvent *builder_event(ProfileBuilder *builder, const PdEvent *event);
/* Its number in the profile. */
int builder_event_number(ProfileBuilder *builder, const PdEvent *event, BuilderEvent *row,
                         uint32_t *ret);
int builder_lost(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp);

/* In builder-frame.c: */
int builder_frames_new(ProfileBuilder *builder);
void builder_frames_done(ProfileBuilder *builder);
FrameSpace builder_space(ProfileBuilder *builder, const PdSample *sample, unsigned cpumode);
int builder_frame(ProfileBuilder *builder, const FrameSpace *space, uint64_t address,
                  bool is_return, uint32_t *ret);
/* Forgets what is numbered in the profile. */
void builder_frames_forget(ProfileBuilder *builder);
/* In builder-build-id.c: names to build ids, which perf writes at the end of a recording. */
int builder_build_ids_read(ProfileBuilder *builder);
int builder_build_ids_add(ProfileBuilder *builder, const PdBuildId *entry);
void builder_build_ids_find(const ProfileBuilder *builder, FrameMapping *mapping);
void builder_build_ids_done(ProfileBuilder *builder);

/* In builder-chain.c: */
int builder_chains_new(ProfileBuilder *builder);
void builder_chains_done(ProfileBuilder *builder);
void builder_chains_forget(ProfileBuilder *builder);
int builder_stack(ProfileBuilder *builder, const PdRecord *record, const PdSample *sample,
                  uint32_t *ret);

/* In builder-label.c: */
/* 1 and the number of the label; 0: a filter leaves the sample out. Else its time counts. */
int builder_label(ProfileBuilder *builder, const PdSample *sample, uint32_t event, uint32_t *ret);
/* After a record that may have changed what a control group is called. */
void builder_groups_forget(ProfileBuilder *builder);
