/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "client/verify/verify-state.h"
#include "perfdata/feature/environment.h"

/*
 * What can be wrong with records, one at a time and as a stream: sizes, bodies, ids, and the
 * promise of FINISHED_ROUND. Each kind of fault is counted and its first place is kept, so that a
 * broken file costs one line for each kind.
 */

/* Records of tools whose size may legitimately not be a multiple of 8. */
static bool verify_record_may_be_odd(const PdRecord *record) {
    switch (record->type) {
    case PD_RECORD_TRACING_DATA:
    case PD_RECORD_BUILD_ID:
    case PD_RECORD_CPU_MAP:
    case PD_RECORD_HEADER_FEATURE:
    case PD_RECORD_COMPRESSED:
        return true;
    case PD_RECORD_EVENT_UPDATE:
        /* Older perf did not round up its list of CPUs, as in a CPU_MAP. */
        return record->size >= PD_RECORD_HEADER_SIZE + sizeof(uint64_t) &&
               load_u64(record->data + PD_RECORD_HEADER_SIZE, record->swap) == PD_EVENT_UPDATE_CPUS;
    default:
        return record->type >= PD_RECORD_SIMPLEPERF;
    }
}

static void verify_record_tally(RecordTally *t, const PdRecord *record) {
    if (t->n++ > 0)
        return;
    t->first = (Place){.known = true, .file = record->file, .offset = record->offset};
    t->type = record->type;
}

static void verify_record_add_bounded(uint64_t *sum, uint64_t n) {
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = UINT64_MAX;
}

static void verify_record_check_body(RecordChecks *c, const PdReader *reader,
                                     const PdRecord *record, const PdStamp *stamp) {
    const PdEvents *events = pd_reader_events((PdReader *)reader);
    bool needs_event = record->type == PD_RECORD_SAMPLE || record->type == PD_RECORD_READ ||
                       record->type == PD_RECORD_CALLCHAIN_DEFERRED;
    PdBody body;
    int r;

    if (!stamp->event && record->type < PD_RECORD_USER && (needs_event || stamp->has_id)) {
        verify_record_tally(&c->no_event, record);
        if (needs_event)
            return;
    }
    r = pd_record_parse(record, stamp->event, &body);
    if (r == -EOPNOTSUPP)
        verify_record_tally(&c->unknown_type, record);
    else if (r < 0)
        verify_record_tally(&c->broken, record);
    if (r < 0)
        return;
    if (record->type == PD_RECORD_MMAP2 && (record->misc & PD_MISC_MMAP_BUILD_ID) &&
        body.mmap.build_id_size == 0)
        verify_record_tally(&c->no_build_id, record);
    if (record->type == PD_RECORD_LOST) {
        verify_record_add_bounded(&c->lost_events, body.lost.lost);
        if (body.lost.id != 0 && !pd_events_by_id(events, body.lost.id) &&
            pd_events_count(events) > 1)
            verify_record_tally(&c->no_event, record);
    } else if (record->type == PD_RECORD_LOST_SAMPLES)
        verify_record_add_bounded(&c->lost_samples, body.lost.lost);
}

static void verify_record_check_time(RecordChecks *c, const PdReader *reader,
                                     const PdRecord *record, const PdStamp *stamp) {
    if (record->type == PD_RECORD_SAMPLE && !stamp->has_time)
        verify_record_tally(&c->no_time, record);
    if (!stamp->has_time || stamp->time == 0 || stamp->time == UINT64_MAX)
        return;
    if (record->type == PD_RECORD_SAMPLE) {
        c->first_ns = c->has_time ? MIN(c->first_ns, stamp->time) : stamp->time;
        c->last_ns = MAX(c->last_ns, stamp->time);
        c->has_time = true;
    }
    if (stamp->time < c->promised_ns && pd_reader_header(reader)->mode != PD_MODE_DIRECTORY)
        verify_record_tally(&c->late, record);
    c->greatest_ns = MAX(c->greatest_ns, stamp->time);
}

void verify_record(RecordChecks *c, const PdReader *reader, const PdRecord *record,
                   const PdStamp *stamp, int stamped) {
    c->records++;
    c->samples += record->type == PD_RECORD_SAMPLE;
    c->throttled += record->type == PD_RECORD_THROTTLE;
    c->n_auxtrace += record->type == PD_RECORD_AUXTRACE;
    if (record->size % 8 != 0 && !verify_record_may_be_odd(record))
        verify_record_tally(&c->misaligned, record);
    if (record->type == PD_RECORD_FINISHED_ROUND) {
        c->promised_ns = MAX(c->promised_ns, c->at_end_ns);
        c->at_end_ns = c->greatest_ns;
    }
    if (stamped < 0) {
        verify_record_tally(pd_record_type_name(record->type) ? &c->too_short : &c->unknown_type,
                            record);
        return;
    }
    verify_record_check_body(c, reader, record, stamp);
    verify_record_check_time(c, reader, record, stamp);
}

/* Each kind of fault with its text, for one record and for several. */
typedef struct Fault {
    size_t tally; /* offset in RecordChecks */
    Severity severity;
    const char *check, *one, *many;
    bool shows_type;
} Fault;

/* clang-format off */
static const Fault faults[] = {
    {offsetof(RecordChecks, misaligned),   SEVERITY_ERROR,   "alignment", "record has a size that is not a multiple of 8",      "records have sizes that are not multiples of 8", true},
    {offsetof(RecordChecks, too_short),    SEVERITY_ERROR,   "body",      "record is too short for its event",               "records are too short for their events",       true},
    {offsetof(RecordChecks, broken),       SEVERITY_ERROR,   "body",      "record does not hold what it announces",          "records do not hold what they announce",       true},
    {offsetof(RecordChecks, no_event),     SEVERITY_ERROR,   "id",        "record has an id that no event has",              "records have ids that no event has",           true},
    {offsetof(RecordChecks, late),         SEVERITY_WARNING, "order",     "record comes after the end of its round",  "records come after the end of their round", true},
    {offsetof(RecordChecks, no_build_id),  SEVERITY_WARNING, "build-id",  "mapping has the flag of a build id but no build id, which perf cannot read", "mappings have the flag of a build id but no build id, which perf cannot read", false},
    {offsetof(RecordChecks, no_time),      SEVERITY_NOTE,    "time",      "sample has no time",                              "samples have no time",                         false},
    {offsetof(RecordChecks, unknown_type), SEVERITY_NOTE,    "type",      "record is of a type whose body is not understood", "records are of types whose bodies are not understood", true},
};
/* clang-format on */

static void verify_record_report(const RecordChecks *c, const Fault *fault, Findings *findings) {
    const RecordTally *t = (const RecordTally *)((const char *)c + fault->tally);
    const char *name = pd_record_type_name(t->type);
    char type[48] = "";

    if (t->n == 0)
        return;
    if (fault->shows_type && name)
        snprintf(type, sizeof(type), " (%s%s)", name, t->n == 1 ? "" : " first");
    else if (fault->shows_type)
        snprintf(type, sizeof(type), " (type %" PRIu32 "%s)", t->type, t->n == 1 ? "" : " first");
    findings_add(findings, fault->severity, fault->check, &t->first, t->n, "%" PRIu64 " %s%s", t->n,
                 t->n == 1 ? fault->one : fault->many, type);
}

static void verify_record_report_lost(const RecordChecks *c, Findings *findings) {
    if (c->lost_events > 0)
        findings_add(findings, SEVERITY_WARNING, "lost", NULL, c->lost_events,
                     "%" PRIu64 " record%s lost while it was recorded", c->lost_events,
                     c->lost_events == 1 ? " was" : "s were");
    if (c->lost_samples > 0)
        findings_add(findings, SEVERITY_WARNING, "lost", NULL, c->lost_samples,
                     "%" PRIu64 " sample%s lost while it was recorded", c->lost_samples,
                     c->lost_samples == 1 ? " was" : "s were");
    if (c->throttled > 0)
        findings_add(findings, SEVERITY_NOTE, "throttled", NULL, c->throttled,
                     "the kernel throttled sampling %" PRIu64 " time%s", c->throttled,
                     c->throttled == 1 ? "" : "s");
}

/* Compares SAMPLE_TIME with the samples. */
static int verify_record_check_sample_time(const RecordChecks *c, PdReader *reader,
                                           Findings *findings) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    Place place = {.known = true,
                   .offset = pd_reader_feature_offset(reader, PD_FEATURE_SAMPLE_TIME)};
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_SAMPLE_TIME);
    if (r < 0 || !c->has_time || !env->has[PD_FEATURE_SAMPLE_TIME])
        return r;
    /* perf leaves zeroes if it did not examine the samples, and all ones if there were none. */
    if (env->last_sample_time == 0 || env->first_sample_time == UINT64_MAX)
        return 0;
    if (c->first_ns < env->first_sample_time || c->last_ns > env->last_sample_time)
        findings_add(findings, SEVERITY_WARNING, "sample-time", place.offset > 0 ? &place : NULL, 1,
                     "samples are of %" PRIu64 " to %" PRIu64
                     " ns, but feature SAMPLE_TIME says %" PRIu64 " to %" PRIu64,
                     c->first_ns, c->last_ns, env->first_sample_time, env->last_sample_time);
    return 0;
}

static void verify_record_check_compressed(PdReader *reader, Findings *findings) {
    uint64_t n = pd_reader_on_disk(reader, PD_RECORD_COMPRESSED) +
                 pd_reader_on_disk(reader, PD_RECORD_COMPRESSED2);

    if (n > 0 && !pd_reader_header(reader)->unfinished &&
        !pd_reader_has_feature(reader, PD_FEATURE_COMPRESSED))
        findings_add(findings, SEVERITY_ERROR, "compressed", NULL, n,
                     "%" PRIu64 " records are compressed, but feature COMPRESSED is missing, and "
                     "perf reads none of them without it",
                     n);
}

int verify_records_end(const RecordChecks *c, PdReader *reader, Findings *findings) {
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        verify_record_report(c, &faults[i], findings);
    verify_record_report_lost(c, findings);
    verify_record_check_compressed(reader, findings);
    return verify_record_check_sample_time(c, reader, findings);
}

static void verify_record_check_feature(PdReader *reader, PdEnvironment *env, unsigned bit,
                                        Findings *findings, int *error) {
    const char *name = pd_feature_name(bit);
    uint64_t offset = pd_reader_feature_offset(reader, bit);
    Place place = {.known = offset > 0, .offset = offset};
    char number[16];
    Bytes body;
    int r;

    snprintf(number, sizeof(number), "%u", bit);
    if (!name)
        findings_add(findings, SEVERITY_NOTE, "feature", &place, 1, "feature %u is unknown", bit);
    r = pd_reader_feature(reader, bit, &body);
    if (r == -EFBIG) {
        findings_add(findings, SEVERITY_WARNING, "feature", &place, 1,
                     "feature %s is larger than profctl reads", name ?: number);
        return;
    }
    /* verify_sections() reports what is beyond the end of the file. */
    if (r == -EBADMSG)
        return;
    if (r >= 0 && name)
        r = pd_environment_read(env, bit, body, pd_reader_header(reader)->swap);
    if (r == -EBADMSG)
        findings_add(findings, SEVERITY_ERROR, "feature", &place, 1,
                     "feature %s does not hold what it announces", name ?: number);
    else if (r < 0 && r != -ENOENT)
        *error = r;
}

int verify_features(PdReader *reader, Findings *findings) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    for (unsigned bit = 0; bit < PD_FEATURE_BITS && r >= 0; bit++)
        if (pd_reader_has_feature(reader, bit))
            verify_record_check_feature(reader, env, bit, findings, &r);
    return r;
}

void verify_events(PdReader *reader, bool truncated, Findings *findings) {
    const PdEvents *events = pd_reader_events(reader);
    uint64_t shared = 0;
    const PdEvent *a = NULL, *b = NULL;

    if (pd_events_count(events) == 0 && !truncated)
        findings_add(findings, SEVERITY_ERROR, "event", NULL, 1, "it describes no event");
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdEvent *event = pd_events_at(events, i);

        for (size_t k = 0; k < event->n_ids; k++) {
            const PdEvent *owner = pd_events_by_id(events, event->ids[k]);

            if (owner == event)
                continue;
            if (shared++ == 0) {
                a = owner;
                b = event;
            }
        }
    }
    if (shared > 0)
        findings_add(findings, SEVERITY_ERROR, "id", NULL, shared,
                     "%" PRIu64 " id%s shared by two events, '%.60s' and '%.60s' first", shared,
                     shared == 1 ? " is" : "s are", a->name, b->name);
}
