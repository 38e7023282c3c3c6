/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the builder share. profile-builder.c takes records and hands profiles over;
 * builder-event.c keeps the events of the recording, builder-frame.c finds frames of addresses,
 * builder-chain.c makes stacks of call chains, builder-label.c makes labels, builder-cell.c counts,
 * and builder-fold.c makes room, for which builder-fold-label.c chooses the labels that stay.
 */

#include "perfdata/order/order.h"
#include "process/table/table.h"
#include "profile/profile-builder.h"
#include "unwind/unwind.h"
#include "util/hash-index.h"

enum {
    NODES_DEFAULT = 4 << 20,
    NODES_MIN = 64,
    TEXT_BYTES_MAX = 256 << 20,
    CHAIN_WORDS_MAX = 8192,
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
    bool is_asked; /* for the unwind table of the file */
    const UnwindTable *table;
} MappingSlot;

/* A call chain that was looked up before, by the hash of all that it depends on. */
typedef struct ChainSlot {
    uint64_t hash, check; /* hash 0: free */
    uint32_t stack;
} ChainSlot;

/* A sample whose user part comes in a record of its own, when its thread goes back to user mode. */
typedef struct BuilderDeferred {
    uint8_t *record; /* a copy */
    uint32_t size, tid;
    uint16_t misc;
    bool swap;
    const PdEvent *event;
    uint64_t cookie;
} BuilderDeferred;

/* The last value of a counter, as samples with values have it. */
typedef struct BuilderValue {
    uint64_t id, value;
} BuilderValue;

/* The period of a value that is the first of its counter. */
typedef struct BuilderFirst {
    bool counts;     /* the value is the period */
    uint64_t id;     /* of the counter that took the sample */
    uint64_t period; /* of this counter; that of the others is 0 */
} BuilderFirst;

/* enum perf_callchain_context */
#define CONTEXT_HV            ((uint64_t)-32)
#define CONTEXT_KERNEL        ((uint64_t)-128)
#define CONTEXT_USER          ((uint64_t)-512)
#define CONTEXT_USER_DEFERRED ((uint64_t)-640) /* a cookie follows */
#define CONTEXT_GUEST         ((uint64_t)-2048)
#define CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define CONTEXT_GUEST_USER    ((uint64_t)-2560)
#define CONTEXT_MAX           ((uint64_t)-4095)

/* Where an address is looked up. */
typedef struct FrameSpace {
    const ProcessMaps *maps; /* NULL: nothing is known */
    uint64_t version;        /* of maps; 0: NULL */
    uint32_t pid;
    unsigned cpumode;
    uint64_t time; /* of the sample */
} FrameSpace;

/* The last label, which most samples have again. */
typedef struct LabelCache {
    ProfileLabel label;
    uint32_t number;
    bool is_set;
} LabelCache;

/* How spans of time become longer ones. */
typedef struct BuilderScale {
    uint64_t factor; /* so many become one */
    uint64_t lead;   /* so many more begin before start_ns, in the first one that is longer */
} BuilderScale;

struct ProfileBuilder {
    ProfileOptions options;
    uint64_t seed; /* of hashes */
    Profile *profile;
    size_t cells_max, labels_max;
    bool may_exceed; /* what has been folded is kept, whatever the limits say */
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
    bool has_clock;      /* real_offset of the profile is that of the first recording */
    bool is_clock_known; /* time_shift is that of this recording */
    bool has_totals;     /* a tool wrote how many samples were lost in all */

    FrameSlot *frame_slots;
    MappingSlot *mapping_slots;
    ChainSlot *chain_slots;
    size_t n_chain_slots, n_chain_fills;
    uint32_t *chain_frames; /* of the stack that is being made */
    LabelCache last_label;

    uint64_t *words;           /* a chain that is put together, CHAIN_WORDS_MAX */
    bool has_exact;            /* its callers are instructions, not return addresses */
    uint16_t machine;          /* of the recording, EM_X86_64 */
    UnwindCache *cache;        /* NULL: nothing was unwound yet */
    BuilderDeferred *deferred; /* DEFERRED_MAX, in order of time from first_deferred on */
    size_t first_deferred, n_deferred;
    uint64_t deferred_bytes;
    BuilderValue *values;
    HashIndex by_value;
    bool is_recorder_known, is_of_profd; /* the recording */
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
/* In builder-fold-label.c: which labels of the old profile stay, at most half of the limits of
 * labels, texts and cells, with the new numbers of nodes. Times are scaled before any label goes.
 */
int builder_fold_choose_labels(const ProfileBuilder *builder, const Profile *from,
                               const uint32_t *nodes, bool **ret_stay, BuilderScale *ret_scale);
/* In builder-lookup.c: forgets the numbers that lookups have remembered. */
void builder_forget_lookups(ProfileBuilder *builder);

/* In builder-event.c: */
/* NULL: no memory. */
BuilderEvent *builder_event(ProfileBuilder *builder, const PdEvent *event);
/* Its number in the profile. */
int builder_event_number(ProfileBuilder *builder, const PdEvent *event, BuilderEvent *row,
                         uint32_t *ret);
/* Sets is_of_profd; the head of a stream is complete with its first sample. */
int builder_read_recorder(ProfileBuilder *builder);
int builder_lost(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp);

/* In builder-frame.c: */
int builder_frames_new(ProfileBuilder *builder);
void builder_frames_done(ProfileBuilder *builder);
FrameSpace builder_space(ProfileBuilder *builder, const PdSample *sample, unsigned cpumode);
int builder_frame(ProfileBuilder *builder, const FrameSpace *space, uint64_t address,
                  bool is_return, uint32_t *ret);
/* The slot of a mapping of the space, with its frame mapping. */
int builder_mapping(ProfileBuilder *builder, const FrameSpace *space, const ProcessMapping *mapping,
                    MappingSlot **ret);
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

/* In builder-user.c: completes the chain with what the sample has elsewhere: a stack that is to be
 * unwound, or branches. */
int builder_user(ProfileBuilder *builder, const PdRecord *record, PdSample *sample);
/* Appends chains of the host's byte order to the builder's words, where they have room. */
void builder_words_begin(ProfileBuilder *builder, PdSample *sample);
void builder_words_add(ProfileBuilder *builder, PdSample *sample, uint64_t word);

/* In builder-deferred.c: */
/* 1: the sample waits for its user part; 0: it has no user part to wait for. */
int builder_defer(ProfileBuilder *builder, const PdRecord *record, PdSample *sample);
/* Takes the oldest sample that waits; with `cookie` not NULL, the oldest that waits for this part
 * of the thread. False: there is none. The record is to be freed. */
bool builder_deferred_take(ProfileBuilder *builder, const uint64_t *cookie, uint32_t tid,
                           BuilderDeferred *ret);
/* Puts the user part in the place of the mark at the end of the sample's chain. */
void builder_deferred_join(ProfileBuilder *builder, PdSample *sample, const PdCallchain *user);
bool builder_deferred_is_full(const ProfileBuilder *builder);

/* In builder-value.c: */
/* Before the values of a sample; its period is then still that of the record. */
int builder_values_begin(ProfileBuilder *builder, const PdSample *sample, BuilderFirst *ret);
/* How far a counter went since the last sample with its value. */
int builder_value(ProfileBuilder *builder, const PdReadValue *value, const BuilderFirst *first,
                  uint64_t *ret_period);

/* In builder-label.c: */
/* 1 and the number of the label; 0: a filter leaves the sample out. Else its time counts. */
int builder_label(ProfileBuilder *builder, const PdSample *sample, uint32_t event, uint32_t *ret);
/* Counts spans of time from the earliest sample; once, when the profile is complete. */
void builder_label_settle_times(Profile *profile);
/* Makes spans of time longer by the least factor with which a second is still a number of spans, or
 * a span a number of seconds. False: one is as long as all samples already. */
bool builder_label_lengthen_spans(const Profile *profile, BuilderScale *scale);
/* The number of the longer span of a span. */
uint32_t builder_label_scaled(const BuilderScale *scale, uint32_t span);
/* The begin and the length of spans, while the profile is made. */
void builder_label_scale_times(const BuilderScale *scale, Profile *profile);
/* After a record that may have changed what a control group is called. */
void builder_groups_forget(ProfileBuilder *builder);

/* In builder-sample.c: */
int builder_take_sample(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp);
/* A CALLCHAIN_DEFERRED. */
int builder_take_deferred(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp);
/* Counts what still waits for its user part. */
int builder_flush_deferred(ProfileBuilder *builder);
