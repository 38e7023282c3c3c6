/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "store/disk/codec.h"
#include "store/disk/dirfd.h"
#include "store/snapshot/snapshot-private.h"

/* Reads NAME.json strictly: rows of two tables, three enumerations, a list of sentences. */

enum { VERSION = 1, BYTES_MAX = 64 << 10 };

static_assert((int)SNAPSHOT_TEXT_MAX <= (int)CODEC_TEXT_MAX, "texts pass through one that long");

#define NUMBER(member) .name = #member, .offset = offsetof(SnapshotInfo, member)
#define TEXT(member)   #member, offsetof(SnapshotInfo, member), sizeof(((SnapshotInfo *)NULL)->member)

/* clang-format off */
static const struct {
    const char *name;
    size_t      offset;
    bool        is_new; /* absent in files of an earlier version: 0 */
} numbers[] = {
    { NUMBER(created_ns) },
    { NUMBER(since_ns)   },
    { NUMBER(until_ns)   },
    { NUMBER(first_ns)   },
    { NUMBER(last_ns)    },
    { NUMBER(samples)    },
    { NUMBER(lost)       },
    { NUMBER(unidentified), .is_new = true },
};
static const struct {
    const char *name;
    size_t      offset, size;
} texts[] = {
    { TEXT(name)    },
    { TEXT(session) },
    { TEXT(reason)  },
};
static const struct {
    const char *name;
    size_t      offset;
} flags[] = {
    { NUMBER(sensitive) },
    { NUMBER(pinned)    },
};
/* clang-format on */

static json_t *snapshot_codec_encode_partial(const SnapshotInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < info->n_partial; i++)
        if (json_array_append_new(list, codec_text(info->partial[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *snapshot_codec_encode_gap(const PdGap *gap) {
    json_t *json = json_pack("{s:o,s:o,s:s}", "from_ns", codec_number(gap->from_ns), "to_ns",
                             codec_number(gap->to_ns), "reason", pd_gap_reason_name(gap->reason));

    if (json && gap->cpu != PD_ALL_CPUS &&
        json_object_set_new(json, "cpu", codec_number(gap->cpu)) < 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *snapshot_codec_encode_coverage(const StoreCoverage *coverage) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < coverage->n_gaps; i++)
        if (json_array_append_new(list, snapshot_codec_encode_gap(&coverage->gaps[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return json_pack("{s:o,s:o,s:o,s:o}", "from_ns", codec_number(coverage->since_ns), "to_ns",
                     codec_number(coverage->until_ns), "recorded_ns",
                     codec_number(coverage->recorded_ns), "gaps", list);
}

int snapshot_manifest_encode(const Kept *kept, Buffer *out) {
    json_auto_t *json = json_object();
    const SnapshotInfo *info = &kept->info;
    const char *base = (const char *)info;
    _cleanup_free_ char *dump = NULL;
    int bad = !json || json_object_set_new(json, "version", json_integer(VERSION));

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        bad |= json_object_set_new(json, texts[i].name, codec_text(base + texts[i].offset));
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t v;

        memcpy(&v, base + numbers[i].offset, sizeof(v));
        bad |= json_object_set_new(json, numbers[i].name, codec_number(v));
    }
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        bad |= json_object_set_new(json, flags[i].name,
                                   json_boolean(*(const bool *)(base + flags[i].offset)));
    bad |=
        json_object_set_new(json, "uid", codec_number(info->uid)) |
        json_object_set_new(json, "privileged", json_boolean(kept->privileged)) |
        json_object_set_new(json, "layout",
                            json_string(info->layout == LAYOUT_DIRECTORY ? "directory" : "file")) |
        json_object_set_new(json, "partial", snapshot_codec_encode_partial(info));
    if (info->coverage.is_known)
        bad |=
            json_object_set_new(json, "coverage", snapshot_codec_encode_coverage(&info->coverage));
    dump = bad ? NULL : json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (!dump)
        return -ENOMEM;
    buffer_append(out, dump, strlen(dump));
    buffer_append(out, "\n", 1);
    return buffer_error(out);
}

static int snapshot_codec_decode_partial(const json_t *list, SnapshotInfo *info) {
    if (!json_is_array(list) || json_array_size(list) > SNAPSHOT_PARTIAL_MAX)
        return -EBADMSG;
    info->n_partial = json_array_size(list);
    for (size_t i = 0; i < info->n_partial; i++)
        if (codec_take_text(json_array_get(list, i), info->partial[i], SNAPSHOT_TEXT_MAX) < 0)
            return -EBADMSG;
    return 0;
}

static int snapshot_codec_decode_gap(const json_t *json, PdGap *ret) {
    const json_t *on = json_object_get(json, "cpu");
    const char *reason = json_string_value(json_object_get(json, "reason"));
    uint64_t cpu = PD_ALL_CPUS;

    if (!reason ||
        codec_take_number(json_object_get(json, "from_ns"), INT64_MAX, &ret->from_ns) < 0 ||
        codec_take_number(json_object_get(json, "to_ns"), INT64_MAX, &ret->to_ns) < 0 ||
        ret->from_ns > ret->to_ns ||
        (on && codec_take_number(on, PD_COVERAGE_CPUS_MAX - 1, &cpu) < 0))
        return -EBADMSG;
    ret->cpu = (uint32_t)cpu;
    ret->reason = PD_GAP_UNKNOWN;
    (void)pd_gap_reason_from_name(reason, &ret->reason);
    return 0;
}

/* Earlier versions noted no coverage. */
static int snapshot_codec_decode_coverage(const json_t *json, StoreCoverage *ret) {
    const json_t *list = json_object_get(json, "gaps");

    if (!json)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > STORE_GAPS_MAX ||
        codec_take_number(json_object_get(json, "from_ns"), INT64_MAX, &ret->since_ns) < 0 ||
        codec_take_number(json_object_get(json, "to_ns"), INT64_MAX, &ret->until_ns) < 0 ||
        ret->since_ns > ret->until_ns ||
        codec_take_number(json_object_get(json, "recorded_ns"), ret->until_ns - ret->since_ns,
                          &ret->recorded_ns) < 0)
        return -EBADMSG;
    ret->is_known = true;
    ret->n_gaps = json_array_size(list);
    for (size_t i = 0; i < ret->n_gaps; i++)
        if (snapshot_codec_decode_gap(json_array_get(list, i), &ret->gaps[i]) < 0)
            return -EBADMSG;
    return 0;
}

static int snapshot_codec_decode_plain(const json_t *json, SnapshotInfo *info) {
    char *base = (char *)info;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (codec_take_text(json_object_get(json, texts[i].name), base + texts[i].offset,
                            texts[i].size) < 0)
            return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        const json_t *number = json_object_get(json, numbers[i].name);
        uint64_t v = 0;

        if ((number || !numbers[i].is_new) && codec_take_number(number, INT64_MAX, &v) < 0)
            return -EBADMSG;
        memcpy(base + numbers[i].offset, &v, sizeof(v));
    }
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        const json_t *flag = json_object_get(json, flags[i].name);

        if (!json_is_boolean(flag))
            return -EBADMSG;
        *(bool *)(base + flags[i].offset) = json_is_true(flag);
    }
    return 0;
}

int snapshot_manifest_decode(Bytes bytes, Kept *ret) {
    json_auto_t *json = bytes.size > 0 ? json_loadb((const char *)bytes.data, bytes.size,
                                                    JSON_REJECT_DUPLICATES, NULL)
                                       : NULL;
    const json_t *privileged = json_object_get(json, "privileged");
    const char *layout = json_string_value(json_object_get(json, "layout"));
    uint64_t version, uid;

    if (!json_is_object(json) ||
        codec_take_number(json_object_get(json, "version"), VERSION, &version) < 0 ||
        codec_take_number(json_object_get(json, "uid"), UINT32_MAX, &uid) < 0 ||
        !json_is_boolean(privileged) || !layout ||
        (strcmp(layout, "file") != 0 && strcmp(layout, "directory") != 0) ||
        snapshot_codec_decode_plain(json, &ret->info) < 0)
        return -EBADMSG;
    ret->info.uid = (uint32_t)uid;
    ret->info.layout = strcmp(layout, "file") == 0 ? LAYOUT_FILE : LAYOUT_DIRECTORY;
    ret->privileged = json_is_true(privileged);
    if (snapshot_codec_decode_coverage(json_object_get(json, "coverage"), &ret->info.coverage) < 0)
        return -EBADMSG;
    return snapshot_codec_decode_partial(json_object_get(json, "partial"), &ret->info);
}

int snapshot_write_manifest(int folder, const Kept *kept) {
    _cleanup_(buffer_done) Buffer json = {};
    char name[SNAPSHOT_FILE_MAX];
    int r = snapshot_manifest_encode(kept, &json);

    snapshot_manifest_name(kept->info.name, name);
    return r < 0 ? r : dirfd_write(folder, name, buffer_bytes(&json));
}

int snapshot_read_manifest(int folder, const char *name, Kept *ret) {
    _cleanup_(buffer_done) Buffer json = {};
    char text[SNAPSHOT_FILE_MAX];
    int r;

    snapshot_manifest_name(name, text);
    r = dirfd_read(folder, text, BYTES_MAX, &json);
    if (r == 0)
        r = snapshot_manifest_decode(buffer_bytes(&json), ret);
    if (r == 0 && strcmp(ret->info.name, name) != 0)
        r = -EBADMSG;
    return r == -EFBIG ? -EBADMSG : r;
}
