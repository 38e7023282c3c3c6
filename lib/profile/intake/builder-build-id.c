/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "perfdata/feature/environment.h"
#include "process/dso.h"
#include "profile/intake/builder-private.h"
#include "util/array.h"

/*
 * Build ids by the names of files. perf reads them from the files when a recording ends, and writes
 * them as a feature or, in a pipe, as records; mappings seldom have one of their own. A mapping
 * that has one keeps it, since the file may have been replaced in the meantime.
 */

enum { NAMES_MAX = 1 << 20 };

typedef struct BuildIdRow {
    uint8_t size, id[FRAME_BUILD_ID_MAX];
} BuildIdRow;

typedef struct BuilderBuildIds {
    TextSet *names;
    BuildIdRow *rows; /* by the number of the name, of which 0 is that of the kernel itself */
    size_t n;
} BuilderBuildIds;

static int builder_build_ids_new(ProfileBuilder *builder) {
    BuilderBuildIds *ids;
    int r;

    if (builder->build_ids)
        return 0;
    ids = builder->build_ids = calloc(1, sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    r = text_set_new(&ids->names);
    return r >= 0 && !array_grow(&ids->rows, &ids->n) ? -ENOMEM : r;
}

void builder_build_ids_done(ProfileBuilder *builder) {
    BuilderBuildIds *ids = builder->build_ids;

    if (!ids)
        return;
    text_set_free(ids->names);
    free(ids->rows);
    free(ids);
    builder->build_ids = NULL;
}

static bool builder_build_id_is_empty(const PdBuildId *entry) {
    for (size_t i = 0; i < entry->size; i++)
        if (entry->build_id[i] != 0)
            return false;
    return true;
}

int builder_build_ids_add(ProfileBuilder *builder, const PdBuildId *entry) {
    unsigned cpumode = entry->misc & PD_MISC_CPUMODE_MASK;
    Bytes name = entry->filename;
    BuilderBuildIds *ids;
    BuildIdRow *row;
    uint32_t number;
    int r;

    if ((cpumode != PD_MISC_KERNEL && cpumode != PD_MISC_USER) || name.size == 0 ||
        entry->size > FRAME_BUILD_ID_MAX || builder_build_id_is_empty(entry))
        return 0;
    r = builder_build_ids_new(builder);
    if (r < 0)
        return r;
    ids = builder->build_ids;
    if (cpumode == PD_MISC_KERNEL && !dso_is_module(name))
        name.size = 0;
    if (text_set_count(ids->names) >= NAMES_MAX && !text_set_find(ids->names, name, &number))
        return 0;
    r = text_set_add(ids->names, name, &number);
    if (r < 0)
        return r;
    if (number == ids->n && !array_grow(&ids->rows, &ids->n))
        return -ENOMEM;
    row = &ids->rows[number];
    if (row->size == 0) {
        row->size = entry->size;
        memcpy(row->id, entry->build_id, entry->size);
    }
    return 0;
}

int builder_build_ids_read(ProfileBuilder *builder) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    builder_build_ids_done(builder);
    if (r == 0 && pd_reader_header(builder->reader)->mode != PD_MODE_PIPE)
        r = pd_environment_read_feature(env, builder->reader, PD_FEATURE_BUILD_ID);
    for (size_t i = 0; r >= 0 && i < env->n_build_ids; i++) {
        const PdBuildIdEntry *e = &env->build_ids[i];
        Bytes name = {.data = (const uint8_t *)e->filename, .size = strlen(e->filename)};
        PdBuildId entry = {
            .misc = e->misc, .size = e->size, .build_id = e->build_id, .filename = name};

        process_table_feed_build_id(builder->table, e->misc, name);
        r = builder_build_ids_add(builder, &entry);
    }
    return r;
}

void builder_build_ids_find(const ProfileBuilder *builder, FrameMapping *mapping) {
    const BuilderBuildIds *ids = builder->build_ids;
    const BuildIdRow *row;
    uint32_t number = 0;

    if (!ids || mapping->build_id_size > 0 || mapping->path.size == 0)
        return;
    if (mapping->kind != FRAME_KERNEL && !text_set_find(ids->names, mapping->path, &number))
        return;
    row = &ids->rows[number];
    mapping->build_id_size = row->size;
    memcpy(mapping->build_id, row->id, sizeof(row->id));
}
