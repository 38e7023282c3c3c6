/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "profile/intake/builder-private.h"
#include "util/array.h"
#include "util/cgroup-owner.h"
#include "util/clock.h"
#include "util/macro.h"

/*
 * Filters and labels of samples. What a control group is called, and whether it is wanted, is
 * worked out once for each id. A label holds values only for the keys that were asked for, so that
 * there are no more labels than the views need.
 */

enum { GROUPS_MAX = 1 << 16 };

void builder_groups_forget(ProfileBuilder *builder) {
    hash_index_done(&builder->by_group);
    free(builder->groups);
    builder->groups = NULL;
}

static int builder_label_add_text(ProfileBuilder *builder, ProfileKey key, Bytes text,
                                  uint32_t *ret) {
    *ret = PROFILE_NONE;
    return builder->options.keys & profile_key_bit(key)
               ? text_set_add(builder->profile->texts, text, ret)
               : 0;
}

static int builder_label_describe_group(ProfileBuilder *builder, BuilderGroup *group) {
    ProcessAnswer answer = process_table_cgroup(builder->table, group->id);
    Bytes path = answer.known ? name_bytes(answer.name) : (Bytes){};
    CgroupOwner owner;
    Bytes container;
    int r;

    cgroup_owner_find(path, &owner);
    container = (Bytes){.data = (const uint8_t *)owner.container, .size = strlen(owner.container)};
    group->is_wanted = selection_has_group(&builder->options.filter.selection, path);
    group->cgroup = group->unit = group->container = PROFILE_NONE;
    if (!answer.known)
        return 0;
    r = builder_label_add_text(builder, PROFILE_CGROUP, path, &group->cgroup);
    if (r >= 0)
        r = builder_label_add_text(builder, PROFILE_UNIT, owner.unit, &group->unit);
    return r < 0 ? r
                 : builder_label_add_text(builder, PROFILE_CONTAINER, container, &group->container);
}

static int builder_label_group(ProfileBuilder *builder, uint64_t id, BuilderGroup *ret) {
    BuilderGroup group = {.id = id}, *row;
    uint32_t number;
    int r;

    for (size_t probe = 0; (number = hash_index_next(&builder->by_group, id, &probe)) > 0;)
        if (builder->groups[number - 1].id == id) {
            *ret = builder->groups[number - 1];
            return 0;
        }
    r = builder_label_describe_group(builder, &group);
    if (r < 0)
        return r;
    if (builder->by_group.n >= GROUPS_MAX)
        builder_groups_forget(builder);
    row = hash_index_append(&builder->by_group, id, &builder->groups);
    if (!row)
        return -ENOMEM;
    *row = *ret = group;
    return 0;
}

static bool builder_label_is_wanted(ProfileBuilder *builder, const PdSample *sample) {
    const ProfileFilter *filter = &builder->options.filter;
    const Selection *selection = &filter->selection;

    if (filter->until_ns > 0 &&
        (sample->time < filter->since_ns || sample->time >= filter->until_ns))
        return false;
    return selection_has_pid(selection, sample->pid) && selection_has_tid(selection, sample->tid) &&
           selection_has_cpu(selection, sample->cpu);
}

/* The span of the first sample gets this number until the profile is taken, since a later recording
 * may have earlier samples. */
#define FIRST_BUCKET UINT32_C(0x80000000)

/* Spans begin where they do on the wall clock, so that seconds are seconds. */
static void builder_label_note_time(ProfileBuilder *builder, const PdSample *sample) {
    uint64_t time = sample->time + builder->time_shift, real = time + builder->real_offset;
    Profile *profile = builder->profile;

    if (!(sample->sample_type & PD_SAMPLE_TIME))
        return;
    if (profile->first_ns > profile->last_ns) {
        profile->first_ns = profile->last_ns = time;
        profile->start_ns = time - MIN(real % profile->bucket_ns, time);
        return;
    }
    profile->first_ns = MIN(profile->first_ns, time);
    profile->last_ns = MAX(profile->last_ns, time);
}

static uint32_t builder_label_bucket_of(const Profile *profile, uint64_t time) {
    uint64_t n;

    if (time >= profile->start_ns) {
        n = (time - profile->start_ns) / profile->bucket_ns;
        return FIRST_BUCKET + (uint32_t)MIN(n, (uint64_t)(PROFILE_NONE - 1 - FIRST_BUCKET));
    }
    n = (profile->start_ns - time - 1) / profile->bucket_ns + 1;
    return FIRST_BUCKET - (uint32_t)MIN(n, (uint64_t)FIRST_BUCKET);
}

static uint32_t builder_label_bucket(const ProfileBuilder *builder, const PdSample *sample) {
    if (!(sample->sample_type & PD_SAMPLE_TIME))
        return PROFILE_NONE;
    return builder_label_bucket_of(builder->profile, sample->time + builder->time_shift);
}

void builder_label_settle_times(Profile *profile) {
    uint32_t first;

    if (profile->first_ns > profile->last_ns)
        return;
    first = builder_label_bucket_of(profile, profile->first_ns);
    for (size_t i = 0; i < profile->n_labels; i++) {
        uint32_t *bucket = &profile->labels[i].values[PROFILE_TIME];

        if (*bucket != PROFILE_NONE)
            *bucket -= first;
    }
    profile->start_ns -= MIN((FIRST_BUCKET - first) * profile->bucket_ns, profile->start_ns);
}

bool builder_label_lengthen_spans(const Profile *profile, BuilderScale *scale) {
    uint64_t bucket_ns = profile->bucket_ns * scale->factor, factor = 2;
    uint64_t real = profile->start_ns + profile->real_offset;

    if (profile->first_ns > profile->last_ns ||
        bucket_ns > MIN(profile->last_ns - profile->first_ns, UINT64_MAX / 4))
        return false;
    if (bucket_ns < NS_PER_SECOND && NS_PER_SECOND % bucket_ns == 0)
        while (NS_PER_SECOND / bucket_ns % factor > 0)
            factor++;
    bucket_ns *= factor;
    scale->factor *= factor;
    scale->lead = MIN(real % bucket_ns, profile->start_ns) / profile->bucket_ns;
    return true;
}

uint32_t builder_label_scaled(const BuilderScale *scale, uint32_t span) {
    int64_t factor = (int64_t)scale->factor,
            at = (int64_t)span - FIRST_BUCKET + (int64_t)scale->lead;

    if (span == PROFILE_NONE)
        return span;
    at = at >= 0 ? at / factor : -((-at - 1) / factor) - 1;
    return (uint32_t)(FIRST_BUCKET + at);
}

void builder_label_scale_times(const BuilderScale *scale, Profile *profile) {
    profile->start_ns -= scale->lead * profile->bucket_ns;
    profile->bucket_ns *= scale->factor;
}

static int builder_label_intern(ProfileBuilder *builder, const ProfileLabel *label, uint32_t *ret) {
    LabelCache *last = &builder->last_label;
    int r;

    if (last->is_set && memcmp(&last->label, label, sizeof(*label)) == 0) {
        *ret = last->number;
        return 0;
    }
    r = builder_intern_label(builder, label, ret);
    if (r >= 0)
        *last = (LabelCache){.label = *label, .number = *ret, .is_set = true};
    return r;
}

/* Keys that are not kept apart stay PROFILE_NONE. */
static void builder_label_keep(const ProfileBuilder *builder, ProfileKey key, uint32_t value,
                               ProfileLabel *label) {
    if (builder->options.keys & profile_key_bit(key))
        label->values[key] = value;
}

static int builder_label_comm(ProfileBuilder *builder, const PdSample *sample, bool *ret_wanted,
                              uint32_t *ret) {
    const Selection *selection = &builder->options.filter.selection;
    const ProcessName *name = NULL;
    Bytes comm = {};

    *ret = PROFILE_NONE;
    if (!(builder->options.keys & profile_key_bit(PROFILE_COMM)) && selection->n_comms == 0)
        return 0;
    name = process_table_comm(builder->table, sample->pid, sample->tid).name;
    if (name)
        comm = name_bytes(name);
    *ret_wanted = *ret_wanted && selection_has_comm(selection, comm);
    return builder_label_add_text(builder, PROFILE_COMM, comm, ret);
}

int builder_label(ProfileBuilder *builder, const PdSample *sample, uint32_t event, uint32_t *ret) {
    bool is_wanted = builder_label_is_wanted(builder, sample);
    BuilderGroup group;
    ProfileLabel label;
    uint32_t comm;
    int r = is_wanted ? builder_label_comm(builder, sample, &is_wanted, &comm) : 0;

    if (r < 0 || !is_wanted)
        return r;
    r = builder_label_group(builder, sample->cgroup, &group);
    if (r < 0 || !group.is_wanted)
        return r;
    builder_label_note_time(builder, sample);
    memset(&label, 0xff, sizeof(label));
    builder_label_keep(builder, PROFILE_EVENT, event, &label);
    builder_label_keep(builder, PROFILE_COMM, comm, &label);
    builder_label_keep(builder, PROFILE_PID, sample->pid, &label);
    builder_label_keep(builder, PROFILE_TID, sample->tid, &label);
    builder_label_keep(builder, PROFILE_CPU, sample->cpu, &label);
    builder_label_keep(builder, PROFILE_CGROUP, group.cgroup, &label);
    builder_label_keep(builder, PROFILE_UNIT, group.unit, &label);
    builder_label_keep(builder, PROFILE_CONTAINER, group.container, &label);
    builder_label_keep(builder, PROFILE_TIME, builder_label_bucket(builder, sample), &label);
    r = builder_label_intern(builder, &label, ret);
    return r < 0 ? r : 1;
}
