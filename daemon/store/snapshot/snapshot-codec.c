/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "store/disk/codec.h"
#include "store/disk/dirfd.h"
#include "store/snapshot/snapshot-private.h"

/* NAME.json in both directions: rows of a table, a list of sentences, the coverage. */

enum { VERSION = 1, BYTES_MAX = 64 << 10 };

static_assert((int)SNAPSHOT_TEXT_MAX <= (int)CODEC_TEXT_MAX, "texts pass through one that long");

static const char *const layouts[] = {[LAYOUT_FILE] = "file", [LAYOUT_DIRECTORY] = "directory"};

#define INFO(member)                                                                               \
    .name = #member, .offset = offsetof(Kept, info.member),                                        \
    .size = sizeof(((Kept *)NULL)->info.member)

static const CodecRow plain[] = {
    {CODEC_TEXT, INFO(name)},
    {CODEC_TEXT, INFO(session)},
    {CODEC_TEXT, INFO(reason)},
    {CODEC_NUMBER, INFO(created_ns)},
    {CODEC_NUMBER, INFO(since_ns)},
    {CODEC_NUMBER, INFO(until_ns)},
    {CODEC_NUMBER, INFO(first_ns)},
    {CODEC_NUMBER, INFO(last_ns)},
    {CODEC_NUMBER, INFO(samples)},
    {CODEC_NUMBER, INFO(lost)},
    {CODEC_NUMBER, INFO(unidentified), .is_new = true},
    {CODEC_FLAG, INFO(sensitive)},
    {CODEC_FLAG, INFO(pinned)},
    {CODEC_NUMBER, INFO(uid)},
    {CODEC_FLAG, CODEC_ROW(Kept, privileged)},
    {CODEC_FLAG, CODEC_ROW(Kept, unsynchronised), .is_new = true},
    {CODEC_TEXT, CODEC_ROW(Kept, boot), .is_new = true},
    {CODEC_NUMBER, CODEC_ROW(Kept, created_boot_ns), .is_new = true},
    {CODEC_WORD, INFO(layout), .words = layouts, .n_words = ARRAY_SIZE(layouts)},
};

static int snapshot_codec_add_partial(json_t *list, const void *from, size_t i) {
    return json_array_append_new(list, codec_text(((const SnapshotInfo *)from)->partial[i]));
}

static int snapshot_codec_take_partial(void *ret, const json_t *json) {
    SnapshotInfo *info = ret;

    return codec_take_text(json, info->partial[info->n_partial++], SNAPSHOT_TEXT_MAX);
}

static int snapshot_codec_add_gap(json_t *list, const void *from, size_t i) {
    return json_array_append_new(list, codec_gap(&((const StoreCoverage *)from)->gaps[i], false));
}

static int snapshot_codec_take_gap(void *ret, const json_t *json) {
    StoreCoverage *coverage = ret;

    return json_is_string(json_object_get(json, "reason"))
               ? codec_take_gap(json, &coverage->gaps[coverage->n_gaps++])
               : -EBADMSG;
}

static json_t *snapshot_codec_coverage(const StoreCoverage *coverage) {
    return json_pack("{s:o,s:o,s:o,s:o}", "from_ns", codec_number(coverage->since_ns), "to_ns",
                     codec_number(coverage->until_ns), "recorded_ns",
                     codec_number(coverage->recorded_ns), "gaps",
                     codec_array(coverage, coverage->n_gaps, snapshot_codec_add_gap));
}

/* Earlier versions noted no coverage. */
static int snapshot_codec_take_coverage(const json_t *json, StoreCoverage *ret) {
    if (!json)
        return 0;
    if (codec_take_span(json, &ret->since_ns, &ret->until_ns) < 0 ||
        codec_take_number(json_object_get(json, "recorded_ns"), ret->until_ns - ret->since_ns,
                          &ret->recorded_ns) < 0)
        return -EBADMSG;
    ret->is_known = true;
    ret->n_gaps = 0;
    return codec_take_list(json_object_get(json, "gaps"), STORE_GAPS_MAX, ret,
                           snapshot_codec_take_gap);
}

int snapshot_manifest_encode(const Kept *kept, Buffer *out) {
    const SnapshotInfo *info = &kept->info;
    json_auto_t *json = codec_file(VERSION);
    int bad = codec_add_rows(json, plain, ARRAY_SIZE(plain), kept);

    bad |= json_object_set_new(json, "partial",
                               codec_array(info, info->n_partial, snapshot_codec_add_partial));
    if (info->coverage.is_known)
        bad |= json_object_set_new(json, "coverage", snapshot_codec_coverage(&info->coverage));
    return codec_write(bad ? NULL : json, JSON_INDENT(2), out);
}

int snapshot_manifest_decode(Bytes bytes, Kept *ret) {
    json_auto_t *json = codec_read(bytes, BYTES_MAX, VERSION);
    int r = json ? codec_take_rows(json, plain, ARRAY_SIZE(plain), ret) : -EBADMSG;

    if (r == 0)
        r = snapshot_codec_take_coverage(json_object_get(json, "coverage"), &ret->info.coverage);
    ret->info.n_partial = 0;
    if (r == 0)
        r = codec_take_list(json_object_get(json, "partial"), SNAPSHOT_PARTIAL_MAX, &ret->info,
                            snapshot_codec_take_partial);
    return r;
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
