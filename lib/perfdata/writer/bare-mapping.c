/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/bare-mapping.h"

#include <errno.h>
#include <stdlib.h>

#include "util/buffer.h"
#include "util/hash-index.h"

/*
 * A row for each file and one for each mapping, found by name, and by file, process and address.
 * Rows are never removed: an identified mapping may be named without a build id once more.
 */

enum {
    MAPPINGS_MAX = 65536,
    NAMES_MAX = 4 * 1024 * 1024,
};

typedef struct BareFile {
    uint32_t name_at, name_size; /* in names */
    uint32_t n_bare;             /* mappings without a build id */
} BareFile;

typedef struct BareMapping {
    uint64_t start;
    uint32_t file, pid;
    bool is_bare;
} BareMapping;

struct BareMappings {
    BareFile *files;
    BareMapping *mappings;
    HashIndex file_index, mapping_index;
    Buffer names;
    uint64_t seed;
    size_t n_files; /* with a mapping without a build id */
};

int bare_mappings_new(BareMappings **ret) {
    BareMappings *bare = calloc(1, sizeof(*bare));

    if (!bare)
        return -ENOMEM;
    bare->seed = hash_seed();
    *ret = bare;
    return 0;
}

BareMappings *bare_mappings_free(BareMappings *bare) {
    if (!bare)
        return NULL;
    hash_index_done(&bare->file_index);
    hash_index_done(&bare->mapping_index);
    buffer_done(&bare->names);
    free(bare->files);
    free(bare->mappings);
    free(bare);
    return NULL;
}

size_t bare_mappings_files(const BareMappings *bare) {
    return bare->n_files;
}

static Bytes bare_mapping_name(const BareMappings *bare, const BareFile *file) {
    return (Bytes){.data = bare->names.data + file->name_at, .size = file->name_size};
}

static BareFile *bare_mapping_find_file(const BareMappings *bare, uint64_t key, Bytes name) {
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&bare->file_index, key, &probe)) > 0;)
        if (bytes_equal(bare_mapping_name(bare, &bare->files[number - 1]), name))
            return &bare->files[number - 1];
    return NULL;
}

static BareFile *bare_mapping_add_file(BareMappings *bare, uint64_t key, Bytes name) {
    BareFile *file;

    if (!buffer_reserve(&bare->names, name.size + 1))
        return NULL;
    file = hash_index_append(&bare->file_index, key, &bare->files);
    if (!file)
        return NULL;
    file->name_at = (uint32_t)bare->names.size;
    file->name_size = (uint32_t)name.size;
    buffer_append(&bare->names, name.data, name.size);
    return file;
}

static uint64_t bare_mapping_key(const BareMappings *bare, uint32_t file, uint32_t pid,
                                 uint64_t start) {
    return hash_u64(hash_u64(bare->seed, start), (uint64_t)file << 32 | pid);
}

static BareMapping *bare_mapping_find(const BareMappings *bare, uint32_t file, uint32_t pid,
                                      uint64_t start) {
    uint64_t key = bare_mapping_key(bare, file, pid, start);
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&bare->mapping_index, key, &probe)) > 0;) {
        BareMapping *m = &bare->mappings[number - 1];

        if (m->file == file && m->pid == pid && m->start == start)
            return m;
    }
    return NULL;
}

static int bare_mapping_add(BareMappings *bare, uint32_t file, uint32_t pid, uint64_t start) {
    BareMapping *m;

    if (bare->mapping_index.n >= MAPPINGS_MAX)
        return 0;
    m = hash_index_append(&bare->mapping_index, bare_mapping_key(bare, file, pid, start),
                          &bare->mappings);
    if (!m)
        return -ENOMEM;
    *m = (BareMapping){.start = start, .file = file, .pid = pid, .is_bare = true};
    return 0;
}

int bare_mappings_add(BareMappings *bare, uint32_t pid, uint64_t start, Bytes name) {
    uint64_t key = hash_bytes(bare->seed, name);
    BareFile *file = bare_mapping_find_file(bare, key, name);
    BareMapping *m;
    uint32_t number;
    int r = 0;

    if (!file && (bare->file_index.n >= MAPPINGS_MAX || name.size > NAMES_MAX - bare->names.size)) {
        bare->n_files++;
        return 0;
    }
    if (!file)
        file = bare_mapping_add_file(bare, key, name);
    if (!file)
        return -ENOMEM;
    number = (uint32_t)(file - bare->files);
    m = bare_mapping_find(bare, number, pid, start);
    if (m && m->is_bare)
        return 0;
    if (m)
        m->is_bare = true;
    else
        r = bare_mapping_add(bare, number, pid, start);
    bare->n_files += file->n_bare++ == 0;
    return r;
}

void bare_mappings_identify(BareMappings *bare, uint32_t pid, uint64_t start, Bytes name) {
    BareFile *file =
        bare->n_files > 0 ? bare_mapping_find_file(bare, hash_bytes(bare->seed, name), name) : NULL;
    BareMapping *m = file && file->n_bare > 0
                         ? bare_mapping_find(bare, (uint32_t)(file - bare->files), pid, start)
                         : NULL;

    if (!m || !m->is_bare)
        return;
    m->is_bare = false;
    bare->n_files -= --file->n_bare == 0;
}
