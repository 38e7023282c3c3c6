/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-table.h"

#include <errno.h>

#include "util/hash-index.h"
#include "util/macro.h"

/*
 * Two arrays with an index each. Names of mappings are copied, because recordings end before their
 * profile does, and several recordings may feed one profile.
 */

struct FrameTable {
    uint64_t seed; /* of hashes */
    FrameMapping *mappings;
    HashIndex by_mapping;
    Frame *frames;
    HashIndex by_frame;
};

int frame_table_new(FrameTable **ret) {
    FrameTable *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    table->seed = hash_seed();
    *ret = table;
    return 0;
}

FrameTable *frame_table_free(FrameTable *table) {
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->by_mapping.n; i++) {
        free((void *)table->mappings[i].path.data);
        free((void *)table->mappings[i].dso.data);
    }
    free(table->mappings);
    free(table->frames);
    hash_index_done(&table->by_mapping);
    hash_index_done(&table->by_frame);
    free(table);
    return NULL;
}

static bool frame_table_same_bytes(Bytes a, Bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool frame_table_same_mapping(const FrameMapping *a, const FrameMapping *b) {
    if (a->kind != b->kind || a->build_id_size != b->build_id_size || a->pid != b->pid ||
        a->start != b->start || !frame_table_same_bytes(a->dso, b->dso))
        return false;
    if (a->build_id_size > 0)
        return memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
    return a->major == b->major && a->minor == b->minor && a->inode == b->inode &&
           a->generation == b->generation && frame_table_same_bytes(a->path, b->path);
}

static uint64_t frame_table_mapping_key(uint64_t seed, const FrameMapping *m) {
    uint64_t h = hash_u64(seed, (uint64_t)m->pid << 8 | (uint64_t)m->kind);

    h = hash_u64(h, m->start);
    if (m->build_id_size > 0)
        return hash_bytes(h, (Bytes){.data = m->build_id, .size = m->build_id_size});
    return hash_bytes(hash_u64(h, m->inode), m->path);
}

static int frame_table_copy(Bytes from, Bytes *ret) {
    uint8_t *copy = malloc(from.size + 1);

    if (!copy)
        return -ENOMEM;
    if (from.size > 0)
        memcpy(copy, from.data, from.size);
    copy[from.size] = '\0';
    *ret = (Bytes){.data = copy, .size = from.size};
    return 0;
}

static int frame_table_append_mapping(FrameTable *table, const FrameMapping *mapping,
                                      uint64_t key) {
    Bytes path = {}, dso = {};
    FrameMapping *row = NULL;

    if (frame_table_copy(mapping->path, &path) >= 0 && frame_table_copy(mapping->dso, &dso) >= 0)
        row = hash_index_append(&table->by_mapping, key, &table->mappings);
    if (!row) {
        free((void *)path.data);
        free((void *)dso.data);
        return -ENOMEM;
    }
    *row = *mapping;
    row->path = path;
    row->dso = dso;
    return 0;
}

int frame_table_add_mapping(FrameTable *table, const FrameMapping *mapping, uint32_t *ret) {
    uint64_t key = frame_table_mapping_key(table->seed, mapping);
    uint32_t number;
    int r;

    assert(mapping->build_id_size <= FRAME_BUILD_ID_MAX);
    for (size_t probe = 0; (number = hash_index_next(&table->by_mapping, key, &probe)) > 0;)
        if (frame_table_same_mapping(&table->mappings[number - 1], mapping)) {
            uint64_t *first_ns = &table->mappings[number - 1].sampled_ns;

            *first_ns = MIN(*first_ns, mapping->sampled_ns);
            *ret = number - 1;
            return 0;
        }
    if (table->by_mapping.n >= FRAME_MAPPINGS_MAX)
        return -ENOSPC;
    r = frame_table_append_mapping(table, mapping, key);
    if (r >= 0)
        *ret = (uint32_t)table->by_mapping.n - 1;
    return r;
}

int frame_table_add(FrameTable *table, const Frame *frame, uint32_t *ret) {
    uint64_t place = (uint64_t)frame->mapping << 1 | frame->is_return,
             key = hash_u64(hash_u64(table->seed, place), frame->address);
    uint32_t number;
    Frame *row;

    assert(frame->mapping < table->by_mapping.n);
    for (size_t probe = 0; (number = hash_index_next(&table->by_frame, key, &probe)) > 0;) {
        const Frame *f = &table->frames[number - 1];

        if (f->mapping == frame->mapping && f->address == frame->address &&
            f->is_return == frame->is_return) {
            *ret = number - 1;
            return 0;
        }
    }
    if (table->by_frame.n >= FRAMES_MAX)
        return -ENOSPC;
    row = hash_index_append(&table->by_frame, key, &table->frames);
    if (!row)
        return -ENOMEM;
    *row = *frame;
    *ret = (uint32_t)table->by_frame.n - 1;
    return 0;
}

uint32_t frame_table_n_mappings(const FrameTable *table) {
    return (uint32_t)table->by_mapping.n;
}

uint32_t frame_table_n_frames(const FrameTable *table) {
    return (uint32_t)table->by_frame.n;
}

const FrameMapping *frame_table_mapping(const FrameTable *table, uint32_t number) {
    return &table->mappings[number];
}

const Frame *frame_table_frame(const FrameTable *table, uint32_t number) {
    return &table->frames[number];
}
