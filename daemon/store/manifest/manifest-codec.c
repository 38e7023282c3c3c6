/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "store/disk/codec.h"
#include "store/manifest/manifest.h"
#include "util/text.h"

/*
 * A manifest as JSON. Plain members are rows of two tables; lists have one function for each
 * direction. Names may contain any bytes and pass the one escape. Frames and anchors are arrays of
 * numbers, since there are many. Everything that is read is checked: each number and each list has
 * a bound.
 */

static_assert((int)CONFIG_NAME_MAX <= (int)MANIFEST_TEXT_MAX, "texts pass through one that long");

enum { VERSION = 1, FILES_MAX = 64, FRAME_FIELDS = 6, ANCHOR_FIELDS = 3, OLD_GAPS_MAX = 1024 };

typedef struct NumberRow {
    const char *name;
    size_t offset;
    bool is_new; /* absent in manifests of an earlier version: 0 */
} NumberRow;

typedef struct TextRow {
    const char *name;
    size_t offset, size;
} TextRow;

#define NUMBER(member) .name = #member, .offset = offsetof(Manifest, member)
#define TEXT(member)   #member, offsetof(Manifest, member), sizeof(((Manifest *)NULL)->member)

/* clang-format off */
static const NumberRow numbers[] = {
    { NUMBER(sequence)         },
    { NUMBER(first_ns)         },
    { NUMBER(last_ns)          },
    { NUMBER(samples)          },
    { NUMBER(raw_bytes)        },
    { NUMBER(stored_bytes)     },
    { NUMBER(lost)             },
    { NUMBER(throttled_ns)     },
    { NUMBER(throttles)        },
    { NUMBER(inferred)         },
    { NUMBER(dropped)          },
    { NUMBER(unidentified), .is_new = true },
    { NUMBER(sweeps)           },
    { NUMBER(drain_ns)         },
    { NUMBER(cpu_ns)           },
    { NUMBER(memory_bytes)     },
    { NUMBER(queue_high_bytes) },
    { NUMBER(weight)           },
};
static const TextRow texts[] = {
    { TEXT(session)  },
    { TEXT(boot)     },
    { TEXT(host)     },
    { TEXT(recorder) },
    { TEXT(damage)   },
};
static const char *const causes[] = {
    [STORE_LOST_RING]  = "ring",
    [STORE_LOST_QUEUE] = "queue",
};
static const char *const completenesses[] = {
    [SEGMENT_IS_OPEN] = "open",
    [COMPLETE]        = "complete",
    [RECOVERED]       = "recovered",
    [DAMAGED]         = "damaged",
};
/* clang-format on */

static json_t *manifest_codec_encode_frame(const ManifestFrame *f) {
    return json_pack("[i,i,o,o,o,o]", (int)f->kind, (int)f->file, codec_number(f->offset),
                     codec_number(f->raw), codec_number(f->first_ns), codec_number(f->last_ns));
}

static json_t *manifest_codec_encode_anchor(const ClockAnchor *a) {
    return json_pack("[o,o,o]", codec_number(a->monotonic_ns), codec_number(a->real_ns),
                     codec_number(a->boot_ns));
}

/* Earlier versions read `what` and know no `reason`. A gap without an end has the largest
 * number. */
static json_t *manifest_codec_encode_gap(const PdGap *g) {
    json_t *json =
        json_pack("{s:o,s:o,s:s,s:s}", "from_ns", codec_number(g->from_ns), "to_ns",
                  codec_number(MIN(g->to_ns, (uint64_t)INT64_MAX)), "what",
                  pd_gap_reason_text(g->reason), "reason", pd_gap_reason_name(g->reason));

    if (json && g->cpu != PD_ALL_CPUS &&
        json_object_set_new(json, "cpu", codec_number(g->cpu)) < 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* Appends an item, which is NULL when memory ran out; the list is then NULL for good. */
static json_t *manifest_codec_append(json_t *list, json_t *item) {
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *manifest_codec_encode_frames(const Manifest *m) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < m->n_frames; i++)
        list = manifest_codec_append(list, manifest_codec_encode_frame(&m->frames[i]));
    return list;
}

static json_t *manifest_codec_encode_anchors(const Manifest *m) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < m->n_anchors; i++)
        list = manifest_codec_append(list, manifest_codec_encode_anchor(&m->anchors[i]));
    return list;
}

static json_t *manifest_codec_encode_gaps(const Manifest *m) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < m->coverage.n_gaps; i++)
        list = manifest_codec_append(list, manifest_codec_encode_gap(&m->coverage.gaps[i]));
    return list;
}

static json_t *manifest_codec_encode_coverage(const Manifest *m) {
    json_t *cpus = json_array();

    for (uint32_t cpu = 0; cpus && cpu < PD_COVERAGE_CPUS_MAX; cpu++)
        if (pd_coverage_has_cpu(&m->coverage, cpu))
            cpus = manifest_codec_append(cpus, codec_number(cpu));
    return json_pack("{s:o,s:o,s:s,s:o}", "from_ns", codec_number(m->coverage.from_ns), "to_ns",
                     codec_number(m->coverage.to_ns), "after", pd_gap_reason_name(m->after), "cpus",
                     cpus);
}

static json_t *manifest_codec_encode_losses(const Manifest *m) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < m->n_losses; i++)
        list = manifest_codec_append(list, json_pack("{s:o,s:s,s:o}", "cpu",
                                                     codec_number(m->losses[i].cpu), "cause",
                                                     causes[m->losses[i].cause], "samples",
                                                     codec_number(m->losses[i].samples)));
    return list;
}

static json_t *manifest_codec_encode_events(const Manifest *m) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < m->n_events; i++)
        list = manifest_codec_append(list, codec_text(m->events[i]));
    return list;
}

static json_t *manifest_codec_encode_cpus(const Manifest *m) {
    json_t *list = json_array();

    for (uint32_t cpu = 0; list && cpu < MANIFEST_CPUS_MAX; cpu++)
        if (manifest_has_cpu(m, cpu))
            list = manifest_codec_append(list, codec_number(cpu));
    return list;
}

int manifest_encode(const Manifest *m, Buffer *out) {
    json_auto_t *json = json_object();
    _cleanup_free_ char *dump = NULL;
    int bad = !json || json_object_set_new(json, "version", json_integer(VERSION));

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        bad |=
            json_object_set_new(json, texts[i].name, codec_text((const char *)m + texts[i].offset));
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t v;

        memcpy(&v, (const char *)m + numbers[i].offset, sizeof(v));
        bad |= json_object_set_new(json, numbers[i].name, codec_number(v));
    }
    bad |= json_object_set_new(json, "completeness", json_string(completenesses[m->completeness])) |
           json_object_set_new(json, "layout", json_string(m->directory ? "directory" : "file")) |
           json_object_set_new(json, "synchronised", json_boolean(m->synchronised)) |
           json_object_set_new(json, "sensitive", json_boolean(m->sensitive)) |
           json_object_set_new(json, "events", manifest_codec_encode_events(m)) |
           json_object_set_new(json, "cpus", manifest_codec_encode_cpus(m)) |
           json_object_set_new(json, "anchors", manifest_codec_encode_anchors(m)) |
           json_object_set_new(json, "lost_by", manifest_codec_encode_losses(m)) |
           json_object_set_new(json, "gaps", manifest_codec_encode_gaps(m)) |
           json_object_set_new(json, "index", manifest_codec_encode_frames(m));
    if (m->covered)
        bad |= json_object_set_new(json, "coverage", manifest_codec_encode_coverage(m));
    dump = bad ? NULL : json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
    if (!dump)
        return -ENOMEM;
    buffer_append(out, dump, strlen(dump));
    text_putc(out, '\n');
    return buffer_error(out);
}

/* Parses a list of lists of exactly n numbers. */
static int manifest_codec_take_numbers(const json_t *json, const uint64_t *max, size_t n,
                                       uint64_t *ret) {
    if (!json_is_array(json) || json_array_size(json) != n)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++)
        if (codec_take_number(json_array_get(json, i), max[i], &ret[i]) < 0)
            return -EBADMSG;
    return 0;
}

static int manifest_codec_decode_frame(Manifest *m, const json_t *json) {
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
    return manifest_add_frame(m, &frame);
}

static int manifest_codec_decode_anchor(Manifest *m, const json_t *json) {
    static const uint64_t max[ANCHOR_FIELDS] = {INT64_MAX, INT64_MAX, INT64_MAX};
    uint64_t v[ANCHOR_FIELDS];

    if (manifest_codec_take_numbers(json, max, ANCHOR_FIELDS, v) < 0)
        return -EBADMSG;
    return manifest_add_anchor(
        m, &(ClockAnchor){.monotonic_ns = v[0], .real_ns = v[1], .boot_ns = v[2]});
}

/* A later version may have other reasons. */
static PdGapReason manifest_codec_take_reason(const json_t *json) {
    PdGapReason reason = PD_GAP_UNKNOWN;

    (void)pd_gap_reason_from_name(json_string_value(json), &reason);
    return reason;
}

static int manifest_codec_decode_gap(Manifest *m, const json_t *json) {
    const json_t *reason = json_object_get(json, "reason"), *on = json_object_get(json, "cpu");
    uint64_t from, to, cpu = PD_ALL_CPUS;

    if (!json_is_object(json) ||
        codec_take_number(json_object_get(json, "from_ns"), INT64_MAX, &from) < 0 ||
        codec_take_number(json_object_get(json, "to_ns"), INT64_MAX, &to) < 0 || from > to ||
        (on && codec_take_number(on, PD_COVERAGE_CPUS_MAX - 1, &cpu) < 0))
        return -EBADMSG;
    /* An earlier version wrote this: it noted some gaps but not the time span. */
    if (!json_is_string(reason))
        return m->covered ? -EBADMSG : 0;
    return pd_coverage_add_gap(&m->coverage,
                               &(PdGap){.from_ns = from,
                                        .to_ns = to == INT64_MAX ? PD_GAP_OPEN : to,
                                        .cpu = (uint32_t)cpu,
                                        .reason = manifest_codec_take_reason(reason)});
}

static int manifest_codec_decode_coverage(Manifest *m, const json_t *json) {
    const json_t *after = json_object_get(json, "after"), *cpus = json_object_get(json, "cpus");
    PdCoverage *coverage = &m->coverage;

    if (!json)
        return 0;
    if (!json_is_object(json) || !json_is_string(after) || !json_is_array(cpus) ||
        json_array_size(cpus) > PD_COVERAGE_CPUS_MAX ||
        codec_take_number(json_object_get(json, "from_ns"), INT64_MAX, &coverage->from_ns) < 0 ||
        codec_take_number(json_object_get(json, "to_ns"), INT64_MAX, &coverage->to_ns) < 0 ||
        coverage->from_ns > coverage->to_ns)
        return -EBADMSG;
    for (size_t i = 0; i < json_array_size(cpus); i++) {
        uint64_t cpu;

        if (codec_take_number(json_array_get(cpus, i), PD_COVERAGE_CPUS_MAX - 1, &cpu) < 0)
            return -EBADMSG;
        pd_coverage_add_cpu(coverage, (uint32_t)cpu);
    }
    m->covered = true;
    m->after = manifest_codec_take_reason(after);
    return 0;
}

static int manifest_codec_decode_loss(Manifest *m, const json_t *json) {
    const char *cause = json_string_value(json_object_get(json, "cause"));
    uint64_t cpu, samples, lost = m->lost;

    if (!json_is_object(json) || !cause ||
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

static int manifest_codec_decode_event(Manifest *m, const json_t *json) {
    char name[MANIFEST_TEXT_MAX];

    return codec_take_text(json, name, sizeof(name)) < 0 ? -EBADMSG : manifest_add_event(m, name);
}

static int manifest_codec_decode_cpu(Manifest *m, const json_t *json) {
    uint64_t cpu;

    if (codec_take_number(json, MANIFEST_CPUS_MAX - 1, &cpu) < 0)
        return -EBADMSG;
    manifest_add_cpu(m, (uint32_t)cpu);
    return 0;
}

/* clang-format off */
static const struct {
    const char *name;
    size_t      max;
    int       (*decode)(Manifest *m, const json_t *json);
} lists[] = {
    { "events",  MANIFEST_EVENTS_MAX,  manifest_codec_decode_event  },
    { "cpus",    MANIFEST_CPUS_MAX,    manifest_codec_decode_cpu    },
    { "anchors", MANIFEST_ANCHORS_MAX, manifest_codec_decode_anchor },
    { "lost_by", MANIFEST_LOSSES_MAX,  manifest_codec_decode_loss   },
    { "gaps",    OLD_GAPS_MAX,         manifest_codec_decode_gap    },
    { "index",   MANIFEST_FRAMES_MAX,  manifest_codec_decode_frame  },
};
/* clang-format on */

static int manifest_codec_decode_lists(Manifest *m, const json_t *json) {
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const json_t *list = json_object_get(json, lists[i].name);

        if (!json_is_array(list) || json_array_size(list) > lists[i].max)
            return -EBADMSG;
        for (size_t k = 0; k < json_array_size(list); k++) {
            int r = lists[i].decode(m, json_array_get(list, k));

            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int manifest_codec_decode_plain(Manifest *m, const json_t *json) {
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (codec_take_text(json_object_get(json, texts[i].name), (char *)m + texts[i].offset,
                            texts[i].size) < 0)
            return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        const json_t *number = json_object_get(json, numbers[i].name);
        uint64_t v = 0;

        if ((number || !numbers[i].is_new) && codec_take_number(number, INT64_MAX, &v) < 0)
            return -EBADMSG;
        memcpy((char *)m + numbers[i].offset, &v, sizeof(v));
    }
    return m->first_ns <= m->last_ns && config_name_is_valid(m->session) ? 0 : -EBADMSG;
}

static int manifest_codec_decode_words(Manifest *m, const json_t *json) {
    const char *layout = json_string_value(json_object_get(json, "layout"));
    const char *completeness = json_string_value(json_object_get(json, "completeness"));
    const json_t *synchronised = json_object_get(json, "synchronised");
    const json_t *sensitive = json_object_get(json, "sensitive");
    uint64_t version;

    if (codec_take_number(json_object_get(json, "version"), VERSION, &version) < 0 || version < 1 ||
        !layout || !completeness || !json_is_boolean(synchronised) || !json_is_boolean(sensitive))
        return -EBADMSG;
    m->sensitive = json_is_true(sensitive);
    m->synchronised = json_is_true(synchronised);
    m->directory = strcmp(layout, "directory") == 0;
    if (!m->directory && strcmp(layout, "file") != 0)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(completenesses); i++)
        if (strcmp(completeness, completenesses[i]) == 0) {
            m->completeness = (Completeness)i;
            return 0;
        }
    return -EBADMSG;
}

int manifest_decode(Bytes bytes, Manifest **ret) {
    _cleanup_(manifest_freep) Manifest *m = NULL;
    json_auto_t *json = NULL;
    int r;

    if (bytes.size == 0 || bytes.size > MANIFEST_BYTES_MAX)
        return -EBADMSG;
    json = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json))
        return -EBADMSG;
    r = manifest_new(&m);
    if (r == 0)
        r = manifest_codec_decode_words(m, json);
    if (r == 0)
        r = manifest_codec_decode_plain(m, json);
    if (r == 0)
        r = manifest_codec_decode_coverage(m, json_object_get(json, "coverage"));
    if (r == 0)
        r = manifest_codec_decode_lists(m, json);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}
