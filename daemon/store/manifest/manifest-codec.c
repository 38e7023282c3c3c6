/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "store/disk/codec.h"
#include "store/manifest/manifest.h"

/*
 * A manifest as JSON. Plain members are rows of a table; lists are rows of another, with one
 * function for each direction. Frames and anchors are arrays of numbers, since there are many.
 * Everything that is read is checked: each number and each list has a bound.
 */

static_assert((int)CONFIG_NAME_MAX <= (int)MANIFEST_TEXT_MAX, "texts pass through one that long");

enum { VERSION = 1, FILES_MAX = 64, FRAME_FIELDS = 6, ANCHOR_FIELDS = 3, OLD_GAPS_MAX = 1024 };

#define TEXT(member)                                                                               \
    { CODEC_TEXT, CODEC_ROW(Manifest, member) }
#define NUMBER(member)                                                                             \
    { CODEC_NUMBER, CODEC_ROW(Manifest, member) }
#define STACKS(member)                                                                             \
    {                                                                                              \
        CODEC_NUMBER, "stacks_" #member, offsetof(Manifest, stacks.member), sizeof(uint64_t),      \
            .is_new = true                                                                         \
    }
#define FLAG(member)                                                                               \
    { CODEC_FLAG, CODEC_ROW(Manifest, member) }
#define WORDS(list) .words = list, .n_words = ARRAY_SIZE(list)

static const char *const layouts[] = {"file", "directory"};
static const char *const causes[] = {[STORE_LOST_RING] = "ring", [STORE_LOST_QUEUE] = "queue"};
static const char *const completenesses[] = {[SEGMENT_IS_OPEN] = "open",
                                             [COMPLETE] = "complete",
                                             [RECOVERED] = "recovered",
                                             [DAMAGED] = "damaged"};

/* clang-format off */
static const CodecRow plain[] = {
    TEXT(session),
    TEXT(boot),
    TEXT(host),
    TEXT(recorder),
    TEXT(damage),
    NUMBER(sequence),
    NUMBER(first_ns),
    NUMBER(last_ns),
    NUMBER(samples),
    NUMBER(raw_bytes),
    NUMBER(stored_bytes),
    NUMBER(lost),
    NUMBER(throttled_ns),
    NUMBER(throttles),
    NUMBER(inferred),
    NUMBER(dropped),
    {CODEC_NUMBER, CODEC_ROW(Manifest, unidentified), .is_new = true},
    NUMBER(sweeps),
    NUMBER(drain_ns),
    NUMBER(cpu_ns),
    NUMBER(memory_bytes),
    NUMBER(queue_high_bytes),
    NUMBER(weight),
    STACKS(whole),
    STACKS(truncated),
    STACKS(pending),
    STACKS(refused),
    STACKS(no_rule),
    STACKS(anonymous),
    STACKS(no_code),
    STACKS(stuck),
    STACKS(bits32),
    STACKS(no_user),
    STACKS(bytes),
    {CODEC_WORD, CODEC_ROW(Manifest, completeness), WORDS(completenesses)},
    {CODEC_WORD, "layout", offsetof(Manifest, directory), sizeof(bool), WORDS(layouts)},
    FLAG(synchronised),
    FLAG(sensitive),
};
/* clang-format on */

static int manifest_codec_add_event(json_t *list, const void *from, size_t i) {
    return json_array_append_new(list, codec_text(((const Manifest *)from)->events[i]));
}

static int manifest_codec_take_event(void *ret, const json_t *json) {
    char name[MANIFEST_TEXT_MAX];

    return codec_take_text(json, name, sizeof(name)) < 0 ? -EBADMSG : manifest_add_event(ret, name);
}

static int manifest_codec_add_cpu(json_t *list, const void *from, size_t i) {
    return manifest_has_cpu(from, (uint32_t)i) ? json_array_append_new(list, codec_number(i)) : 0;
}

static int manifest_codec_take_cpu(void *ret, const json_t *json) {
    uint64_t cpu;

    if (codec_take_number(json, MANIFEST_CPUS_MAX - 1, &cpu) < 0)
        return -EBADMSG;
    manifest_add_cpu(ret, (uint32_t)cpu);
    return 0;
}

/* Reads a list of exactly n numbers. */
static int manifest_codec_take_numbers(const json_t *json, const uint64_t *max, size_t n,
                                       uint64_t *ret) {
    if (!json_is_array(json) || json_array_size(json) != n)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++)
        if (codec_take_number(json_array_get(json, i), max[i], &ret[i]) < 0)
            return -EBADMSG;
    return 0;
}

static int manifest_codec_add_anchor(json_t *list, const void *from, size_t i) {
    const ClockAnchor *a = &((const Manifest *)from)->anchors[i];

    return json_array_append_new(list,
                                 json_pack("[o,o,o]", codec_number(a->monotonic_ns),
                                           codec_number(a->real_ns), codec_number(a->boot_ns)));
}

static int manifest_codec_take_anchor(void *ret, const json_t *json) {
    static const uint64_t max[ANCHOR_FIELDS] = {INT64_MAX, INT64_MAX, INT64_MAX};
    uint64_t v[ANCHOR_FIELDS];

    if (manifest_codec_take_numbers(json, max, ANCHOR_FIELDS, v) < 0)
        return -EBADMSG;
    return manifest_add_anchor(
        ret, &(ClockAnchor){.monotonic_ns = v[0], .real_ns = v[1], .boot_ns = v[2]});
}

static int manifest_codec_add_loss(json_t *list, const void *from, size_t i) {
    const ManifestLoss *loss = &((const Manifest *)from)->losses[i];

    return json_array_append_new(list, json_pack("{s:o,s:s,s:o}", "cpu", codec_number(loss->cpu),
                                                 "cause", causes[loss->cause], "samples",
                                                 codec_number(loss->samples)));
}

static int manifest_codec_take_loss(void *ret, const json_t *json) {
    Manifest *m = ret;
    const char *cause = json_string_value(json_object_get(json, "cause"));
    uint64_t cpu, samples, lost = m->lost;

    if (!cause ||
        codec_take_number(json_object_get(json, "cpu"), MANIFEST_CPUS_MAX - 1, &cpu) < 0 ||
        codec_take_number(json_object_get(json, "samples"), INT64_MAX, &samples) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
        if (strcmp(cause, causes[i]) == 0) {
            int r = manifest_add_loss(m, (uint32_t)cpu, (StoreCause)i, samples);

            /* The sum is a separate member. */
            m->lost = lost;
            return r;
        }
    return -EBADMSG;
}

/* Earlier versions read `what` and know no `reason`. */
static int manifest_codec_add_gap(json_t *list, const void *from, size_t i) {
    return json_array_append_new(list,
                                 codec_gap(&((const Manifest *)from)->coverage.gaps[i], true));
}

static int manifest_codec_take_gap(void *ret, const json_t *json) {
    Manifest *m = ret;
    PdGap gap;

    if (codec_take_gap(json, &gap) < 0)
        return -EBADMSG;
    /* An earlier version wrote this: it noted some gaps but not the time span. */
    if (!json_is_string(json_object_get(json, "reason")))
        return m->covered ? -EBADMSG : 0;
    if (gap.to_ns == INT64_MAX)
        gap.to_ns = PD_GAP_OPEN;
    return pd_coverage_add_gap(&m->coverage, &gap);
}

static int manifest_codec_add_frame(json_t *list, const void *from, size_t i) {
    const ManifestFrame *f = &((const Manifest *)from)->frames[i];

    return json_array_append_new(
        list, json_pack("[i,i,o,o,o,o]", (int)f->kind, (int)f->file, codec_number(f->offset),
                        codec_number(f->raw), codec_number(f->first_ns), codec_number(f->last_ns)));
}

static int manifest_codec_take_frame(void *ret, const json_t *json) {
    static const uint64_t max[FRAME_FIELDS] = {STORE_SAMPLES, FILES_MAX, INT64_MAX,
                                               INT64_MAX,     INT64_MAX, INT64_MAX};
    uint64_t v[FRAME_FIELDS];
    ManifestFrame frame;

    if (manifest_codec_take_numbers(json, max, FRAME_FIELDS, v) < 0 || v[4] > v[5])
        return -EBADMSG;
    frame = (ManifestFrame){.kind = (StoreKind)v[0],
                            .file = (uint32_t)v[1],
                            .offset = v[2],
                            .raw = v[3],
                            .first_ns = v[4],
                            .last_ns = v[5]};
    return manifest_add_frame(ret, &frame);
}

/* `count` is the offset of the number of items; CPUs are bits, all of which are looked at. */
#define COUNT(member) offsetof(Manifest, member)
/* clang-format off */
static const struct {
    const char *name;
    size_t      max, count;
    CodecAdd   *add;
    CodecTake  *take;
} lists[] = {
    {"events",  MANIFEST_EVENTS_MAX,  COUNT(n_events),        manifest_codec_add_event,  manifest_codec_take_event},
    {"cpus",    MANIFEST_CPUS_MAX,    SIZE_MAX,               manifest_codec_add_cpu,    manifest_codec_take_cpu},
    {"anchors", MANIFEST_ANCHORS_MAX, COUNT(n_anchors),       manifest_codec_add_anchor, manifest_codec_take_anchor},
    {"lost_by", MANIFEST_LOSSES_MAX,  COUNT(n_losses),        manifest_codec_add_loss,   manifest_codec_take_loss},
    {"gaps",    OLD_GAPS_MAX,         COUNT(coverage.n_gaps), manifest_codec_add_gap,    manifest_codec_take_gap},
    {"index",   MANIFEST_FRAMES_MAX,  COUNT(n_frames),        manifest_codec_add_frame,  manifest_codec_take_frame},
};
/* clang-format on */

static int manifest_codec_add_covered_cpu(json_t *list, const void *from, size_t i) {
    return pd_coverage_has_cpu(from, (uint32_t)i) ? json_array_append_new(list, codec_number(i))
                                                  : 0;
}

static int manifest_codec_take_covered_cpu(void *ret, const json_t *json) {
    uint64_t cpu;

    if (codec_take_number(json, PD_COVERAGE_CPUS_MAX - 1, &cpu) < 0)
        return -EBADMSG;
    pd_coverage_add_cpu(ret, (uint32_t)cpu);
    return 0;
}

static json_t *manifest_codec_coverage(const Manifest *m) {
    return json_pack(
        "{s:o,s:o,s:s,s:o}", "from_ns", codec_number(m->coverage.from_ns), "to_ns",
        codec_number(m->coverage.to_ns), "after", pd_gap_reason_name(m->after), "cpus",
        codec_array(&m->coverage, PD_COVERAGE_CPUS_MAX, manifest_codec_add_covered_cpu));
}

static int manifest_codec_take_coverage(Manifest *m, const json_t *json) {
    const json_t *after = json_object_get(json, "after");

    if (!json)
        return 0;
    if (!json_is_string(after) ||
        codec_take_span(json, &m->coverage.from_ns, &m->coverage.to_ns) < 0 ||
        codec_take_list(json_object_get(json, "cpus"), PD_COVERAGE_CPUS_MAX, &m->coverage,
                        manifest_codec_take_covered_cpu) < 0)
        return -EBADMSG;
    m->covered = true;
    m->after = codec_take_reason(after);
    return 0;
}

int manifest_encode(const Manifest *m, Buffer *out) {
    json_auto_t *json = codec_file(VERSION);
    int bad = codec_add_rows(json, plain, ARRAY_SIZE(plain), m);

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        size_t n = lists[i].max;

        if (lists[i].count != SIZE_MAX)
            memcpy(&n, (const char *)m + lists[i].count, sizeof(n));
        bad |= json_object_set_new(json, lists[i].name, codec_array(m, n, lists[i].add));
    }
    if (m->covered)
        bad |= json_object_set_new(json, "coverage", manifest_codec_coverage(m));
    return codec_write(bad ? NULL : json, JSON_COMPACT, out);
}

int manifest_decode(Bytes bytes, Manifest **ret) {
    _cleanup_(manifest_freep) Manifest *m = NULL;
    json_auto_t *json = codec_read(bytes, MANIFEST_BYTES_MAX, VERSION);
    int r;

    if (!json)
        return -EBADMSG;
    r = manifest_new(&m);
    if (r == 0)
        r = codec_take_rows(json, plain, ARRAY_SIZE(plain), m);
    if (r == 0 && (m->first_ns > m->last_ns || !config_name_is_valid(m->session)))
        r = -EBADMSG;
    if (r == 0)
        r = manifest_codec_take_coverage(m, json_object_get(json, "coverage"));
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++)
        r = codec_take_list(json_object_get(json, lists[i].name), lists[i].max, m, lists[i].take);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}
