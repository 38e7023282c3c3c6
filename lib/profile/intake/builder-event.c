/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "perfdata/feature/environment.h"
#include "profile/intake/builder-private.h"
#include "util/array.h"

/*
 * The events of a recording, as rows of the profile by name: attrs of one name are one event there,
 * as several recordings may have the same one. Whether an event is wanted is decided once.
 */

enum {
    TYPE_SOFTWARE = 1,
    SOFTWARE_CPU_CLOCK = 0,
    SOFTWARE_TASK_CLOCK = 1,
    LOST_BY_FILTER = 1 << 15, /* PERF_RECORD_MISC_LOST_SAMPLES_BPF: not lost, but left out */
};

static Bytes builder_text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static bool builder_event_is_wanted(const ProfileFilter *filter, const char *name) {
    for (size_t i = 0; i < filter->n_events; i++)
        if (fnmatch(filter->events[i], name, 0) == 0)
            return true;
    return filter->n_events == 0;
}

BuilderEvent *builder_event(ProfileBuilder *builder, const PdEvent *event) {
    BuilderEvent *row;

    while (builder->n_events <= event->index) {
        row = array_grow(&builder->events, &builder->n_events);
        if (!row)
            return NULL;
        row->number = UINT32_MAX;
    }
    row = &builder->events[event->index];
    if (!row->is_known) {
        row->is_known = true;
        row->is_wanted = builder_event_is_wanted(&builder->options.filter, event->name);
    }
    return row;
}

static ProfileEvent builder_event_describe(const PdAttr *attr, uint32_t name) {
    return (ProfileEvent){
        .name = name,
        .is_time = attr->type == TYPE_SOFTWARE &&
                   (attr->config == SOFTWARE_CPU_CLOCK || attr->config == SOFTWARE_TASK_CLOCK),
        .by_period = !(attr->flags & PD_ATTR_FREQ),
        .rate = attr->sample_period,
    };
}

int builder_event_number(ProfileBuilder *builder, const PdEvent *event, BuilderEvent *row,
                         uint32_t *ret) {
    Profile *profile = builder->profile;
    ProfileEvent *added;
    uint32_t name, number;
    int r;

    if (row->number != UINT32_MAX) {
        *ret = row->number;
        return 0;
    }
    r = text_set_add(profile->texts, builder_text(event->name), &name);
    if (r < 0)
        return r;
    for (size_t probe = 0; (number = hash_index_next(&builder->by_event, name, &probe)) > 0;)
        if (profile->events[number - 1].name == name) {
            *ret = row->number = number - 1;
            return 0;
        }
    added = hash_index_append(&builder->by_event, name, &profile->events);
    if (!added)
        return -ENOMEM;
    *added = builder_event_describe(&event->attr, name);
    *ret = row->number = (uint32_t)profile->n_events++;
    return 0;
}

int builder_read_recorder(ProfileBuilder *builder) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r;

    if (builder->is_recorder_known)
        return 0;
    r = pd_environment_new(&env);
    if (r == 0)
        r = pd_environment_read_feature(env, builder->reader, PD_FEATURE_VERSION);
    if (r < 0)
        return r;
    builder->is_of_profd = pd_environment_is_of_profd(env);
    builder->is_recorder_known = true;
    return 0;
}

/* perf writes how many samples each event lost in all when it ends, without a time, and profd when
 * it has read the counts of the kernel, of no thread. These figures are exact, and those of the
 * LOST records are in them. What the hardware lost is told of by the kernel, of the thread that
 * ran. */
static int builder_lost_is_exact(ProfileBuilder *builder, const PdRecord *record,
                                 const PdStamp *stamp) {
    int r;

    if (record->type != PD_RECORD_LOST_SAMPLES || stamp->time == 0)
        return record->type == PD_RECORD_LOST_SAMPLES;
    r = builder_read_recorder(builder);
    return r < 0 ? r : builder->is_of_profd && stamp->tid == 0;
}

static void builder_lost_take_back(ProfileBuilder *builder) {
    Profile *profile = builder->profile;

    if (builder->has_totals)
        return;
    builder->has_totals = true;
    for (size_t i = 0; i < builder->n_events; i++) {
        BuilderEvent *row = &builder->events[i];

        if (row->number != UINT32_MAX)
            profile->events[row->number].lost -= row->lost_in_rings;
        profile->lost -= row->lost_in_rings;
        row->lost_in_rings = 0;
    }
}

/* A loss without a time is that of the whole recording, and no window has it. */
static bool builder_lost_counts(const ProfileBuilder *builder, const PdStamp *stamp) {
    const ProfileFilter *filter = &builder->options.filter;

    return filter->until_ns == 0 ||
           (stamp->has_time && stamp->time > 0 && stamp->time >= filter->since_ns &&
            stamp->time < filter->until_ns);
}

int builder_lost(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp) {
    const PdEvent *event = stamp->event;
    BuilderEvent *row;
    uint32_t number;
    PdBody body;
    int r;

    if (pd_record_parse(record, event, &body) < 0) {
        builder->profile->broken++;
        return 0;
    }
    if (record->type == PD_RECORD_LOST)
        event = pd_events_by_id(pd_reader_events(builder->reader), body.lost.id) ?: event;
    if (!event || (record->misc & LOST_BY_FILTER) || !builder_lost_counts(builder, stamp))
        return 0;
    r = builder_lost_is_exact(builder, record, stamp);
    if (r < 0)
        return r;
    if (r > 0)
        builder_lost_take_back(builder);
    row = builder_event(builder, event);
    if (!row)
        return -ENOMEM;
    if (!row->is_wanted || (record->type == PD_RECORD_LOST && builder->has_totals))
        return 0;
    r = builder_event_number(builder, event, row, &number);
    if (r < 0)
        return r;
    if (record->type == PD_RECORD_LOST)
        row->lost_in_rings += body.lost.lost;
    builder->profile->events[number].lost += body.lost.lost;
    builder->profile->lost += body.lost.lost;
    return 0;
}
