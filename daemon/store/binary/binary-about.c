/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "store/binary/binary-private.h"
#include "store/disk/codec.h"
#include "store/disk/dirfd.h"
#include "util/hash.h"

/* about.json beside a kept file: its kind, its size, whose file it was, and paths under which
 * processes mapped it, which may be any bytes. */

enum { VERSION = 1, BYTES_MAX = 64 << 10 };

static const char *const kinds[] = {[BINARY_ELF] = "elf",
                                    [BINARY_VDSO] = "vdso",
                                    [BINARY_KALLSYMS] = "kallsyms",
                                    [BINARY_MAP] = "map"};

static_assert(ARRAY_SIZE(kinds) == BINARY_KINDS, "a name for each");

const char *binary_kind_name(BinaryKind kind) {
    return kinds[kind];
}

static const CodecRow plain[] = {
    {CODEC_WORD, CODEC_ROW(BinaryInfo, kind), .words = kinds, .n_words = ARRAY_SIZE(kinds)},
    {CODEC_NUMBER, CODEC_ROW(BinaryInfo, owner)},
    {CODEC_NUMBER, CODEC_ROW(BinaryInfo, bytes)},
};

static int binary_about_add_path(json_t *list, const void *from, size_t i) {
    return json_array_append_new(list, codec_text(((const BinaryInfo *)from)->paths[i]));
}

static int binary_about_take_path(void *ret, const json_t *json) {
    BinaryInfo *info = ret;

    return codec_take_text(json, info->paths[info->n_paths++], BINARY_PATH_MAX);
}

int binary_about_write(int folder, const BinaryInfo *info) {
    _cleanup_(buffer_done) Buffer out = {};
    json_auto_t *json = codec_file(VERSION);
    int bad = codec_add_rows(json, plain, ARRAY_SIZE(plain), info), r;

    bad |=
        json_object_set_new(json, "paths", codec_array(info, info->n_paths, binary_about_add_path));
    r = codec_write(bad ? NULL : json, JSON_INDENT(2), &out);
    return r < 0 ? r : dirfd_write(folder, BINARY_ABOUT, buffer_bytes(&out));
}

int binary_about_read(int folder, BinaryInfo *ret) {
    _cleanup_(buffer_done) Buffer text = {};
    int r = dirfd_read(folder, BINARY_ABOUT, BYTES_MAX, &text);
    json_auto_t *json = r < 0 ? NULL : codec_read(buffer_bytes(&text), BYTES_MAX, VERSION);

    if (r < 0)
        return r;
    *ret = (BinaryInfo){};
    if (!json || codec_take_rows(json, plain, ARRAY_SIZE(plain), ret) < 0)
        return -EBADMSG;
    return codec_take_list(json_object_get(json, "paths"), BINARY_PATHS_MAX, ret,
                           binary_about_take_path);
}

uint64_t binary_about_hash(const char *path) {
    return hash_bytes(hash_seed(), (Bytes){.data = (const uint8_t *)path, .size = strlen(path)});
}

void binary_about_note(BinaryEntry *entry, const BinaryInfo *info) {
    entry->kind = info->kind;
    entry->owner = info->owner;
    entry->n_paths = (uint8_t)MIN(info->n_paths, (size_t)BINARY_PATHS_MAX);
    for (size_t i = 0; i < entry->n_paths; i++)
        entry->paths[i] = binary_about_hash(info->paths[i]);
}
