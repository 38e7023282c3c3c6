/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/profile-builder.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "perfdata/feature/environment.h"
#include "perfdata/record/stream-mark.h"
#include "profile/intake/builder-private.h"
#include "util/clock.h"

/*
 * Records come in by time: side-band changes the process table, and a sample is looked up in the
 * state that the table has then. What is known of the recording (processes, events, control
 * groups) outlives a profile; what is numbered in a profile is forgotten when it is handed over.
 */

static const uint64_t bucket_default_ns = 1000000000;

int profile_builder_new(const ProfileOptions *options, ProfileBuilder **ret) {
    _cleanup_(profile_builder_freep) ProfileBuilder *builder = calloc(1, sizeof(*builder));
    int r;

    if (!builder)
        return -ENOMEM;
    builder->options = *options;
    if (options->stacks_max == 0)
        builder->options.stacks_max = NODES_DEFAULT;
    builder->options.stacks_max = MAX(builder->options.stacks_max, (uint32_t)NODES_MIN);
    builder->cells_max = builder->options.stacks_max;
    builder->labels_max = builder->options.stacks_max / 4;
    if (options->bucket_ns == 0)
        builder->options.bucket_ns = bucket_default_ns;
    builder->seed = hash_seed();
    builder->words = malloc(CHAIN_WORDS_MAX * sizeof(*builder->words));
    r = builder->words ? builder_frames_new(builder) : -ENOMEM;
    if (r >= 0)
        r = builder_chains_new(builder);
    if (r >= 0)
        r = builder_new_profile(builder, &builder->profile);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(builder);
    return 0;
}

/* Forgets the numbers of the profile that was handed over. */
static void profile_builder_forget_numbers(ProfileBuilder *builder) {
    hash_index_done(&builder->by_event);
    hash_index_done(&builder->by_label);
    hash_index_done(&builder->by_cell);
    builder_forget_lookups(builder);
    for (size_t i = 0; i < builder->n_events; i++) {
        builder->events[i].number = UINT32_MAX;
        builder->events[i].lost_in_rings = 0;
    }
}

static void profile_builder_end_recording(ProfileBuilder *builder) {
    BuilderDeferred deferred;

    while (builder_deferred_take(builder, NULL, 0, &deferred))
        free(deferred.record);
    hash_index_done(&builder->by_value);
    free(builder->values);
    builder->values = NULL;
    free(builder->cache);
    builder->cache = NULL;
    builder->order = pd_order_free(builder->order);
    builder->table = process_table_free(builder->table);
    builder_build_ids_done(builder);
    builder_forget_lookups(builder);
    free(builder->events);
    builder->events = NULL;
    builder->n_events = 0;
    builder->has_totals = false;
    builder->is_recorder_known = false;
    builder->reader = NULL;
}

ProfileBuilder *profile_builder_free(ProfileBuilder *builder) {
    if (!builder)
        return NULL;
    if (builder->frame_slots && builder->mapping_slots && builder->chain_slots)
        profile_builder_end_recording(builder);
    builder_frames_done(builder);
    builder_chains_done(builder);
    free(builder->words);
    free(builder->deferred);
    hash_index_done(&builder->by_event);
    hash_index_done(&builder->by_label);
    hash_index_done(&builder->by_cell);
    profile_free(builder->profile);
    free(builder);
    return NULL;
}

/* Times of later recordings are moved to the clock of the first one, where both are known. */
static void profile_builder_set_clock(ProfileBuilder *builder, uint64_t real_offset) {
    uint64_t shift = real_offset - builder->real_offset;

    builder->is_clock_known = true;
    if (builder->has_clock) {
        /* Two measurements of one clock are closer. */
        builder->time_shift = MIN(shift, -shift) < NS_PER_MS ? 0 : shift;
        return;
    }
    builder->has_clock = true;
    builder->real_offset = real_offset;
    builder->profile->real_offset = real_offset;
    builder->profile->real_known = true;
}

static int profile_builder_read_clock(ProfileBuilder *builder) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, builder->reader, PD_FEATURE_CLOCK_DATA);
    if (r == 0 && env->has[PD_FEATURE_CLOCK_DATA])
        profile_builder_set_clock(builder, env->clock_data_wall_ns - env->clock_data_clockid_ns);
    return r;
}

/* The machine of the recording; that of this host where it does not say. */
static int profile_builder_read_machine(ProfileBuilder *builder) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    struct utsname host;
    const char *name = uname(&host) == 0 ? host.machine : "";
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, builder->reader, PD_FEATURE_ARCH);
    if (r < 0)
        return r;
    if (env->arch)
        name = env->arch;
    builder->machine = strcmp(name, "x86_64") == 0    ? EM_X86_64
                       : strcmp(name, "aarch64") == 0 ? EM_AARCH64
                                                      : EM_NONE;
    return 0;
}

int profile_builder_begin(ProfileBuilder *builder, PdReader *reader) {
    int r = builder_flush_deferred(builder);

    if (r < 0)
        return r;
    profile_builder_end_recording(builder);
    builder->reader = reader;
    builder->time_shift = 0;
    builder->is_clock_known = false;
    r = process_table_new(NULL, &builder->table);
    if (r >= 0)
        r = builder_build_ids_read(builder);
    if (r >= 0)
        r = profile_builder_read_machine(builder);
    return r < 0 ? r : profile_builder_read_clock(builder);
}

uint64_t profile_builder_real_offset(ProfileBuilder *builder) {
    if (!builder->is_clock_known)
        (void)profile_builder_read_clock(builder);
    return builder->real_offset + builder->time_shift;
}

void profile_builder_set_window(ProfileBuilder *builder, uint64_t since_ns, uint64_t until_ns) {
    builder->options.filter.since_ns = since_ns;
    builder->options.filter.until_ns = until_ns;
}

static int profile_builder_take_build_id(ProfileBuilder *builder, const PdRecord *record) {
    PdBody body;

    if (pd_record_parse(record, NULL, &body) < 0)
        return 0;
    return builder_build_ids_add(builder, &body.build_id);
}

int profile_builder_feed(ProfileBuilder *builder, const PdRecord *record, const PdStamp *stamp) {
    PdStreamMark mark;
    int r = 0;

    switch (record->type) {
    case PD_RECORD_SAMPLE:
        return builder_take_sample(builder, record, stamp);
    case PD_RECORD_CALLCHAIN_DEFERRED:
        return builder_take_deferred(builder, record, stamp);
    case PD_RECORD_LOST:
    case PD_RECORD_LOST_SAMPLES:
        return builder_lost(builder, record, stamp);
    case PD_RECORD_EVENT_TYPE:
        if (pd_stream_mark_read(record, &mark) && !builder->is_clock_known)
            profile_builder_set_clock(builder, mark.real_offset);
        return 0;
    case PD_RECORD_BUILD_ID:
        r = profile_builder_take_build_id(builder, record);
        break;
    case PD_RECORD_CGROUP:
        builder_groups_forget(builder);
        break;
    }
    if (process_table_feed(builder->table, record, stamp->event) < 0)
        builder->profile->broken++;
    return r;
}

int profile_builder_read(ProfileBuilder *builder) {
    PdRecord record;
    PdStamp stamp;
    int r = pd_order_new(builder->reader, NULL, &builder->order);

    while (r >= 0 && (r = pd_order_next(builder->order, &record, &stamp)) > 0)
        r = profile_builder_feed(builder, &record, &stamp);
    builder->order = pd_order_free(builder->order);
    return r < 0 ? r : builder_flush_deferred(builder);
}

int profile_builder_take(ProfileBuilder *builder, Profile **ret) {
    Profile *next;
    int r = builder_flush_deferred(builder);

    if (r >= 0)
        r = builder_new_profile(builder, &next);
    if (r < 0)
        return r;
    builder_label_settle_times(builder->profile);
    *ret = builder->profile;
    builder->profile = next;
    profile_builder_forget_numbers(builder);
    return 0;
}
