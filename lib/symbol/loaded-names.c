/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "symbol/elf/plt.h"
#include "symbol/jit/jit-find.h"
#include "symbol/kernel/kernel-find.h"
#include "symbol/resolver-private.h"

/*
 * Mappings are looked up once in the life of a resolver, found or not. A table of a file has the
 * addresses of its ELF headers; that of a kernel counts from _text.
 */

static bool loaded_names_same(const FrameMapping *a, const FrameMapping *b) {
    return a->kind == b->kind && a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 && a->major == b->major &&
           a->minor == b->minor && a->inode == b->inode && a->generation == b->generation &&
           a->pid == b->pid && a->start == b->start && bytes_equal(a->path, b->path);
}

static uint64_t loaded_names_key(const FrameMapping *m) {
    uint64_t h = hash_u64(hash_seed(), (uint64_t)m->pid << 8 | (uint64_t)m->kind);

    h = hash_bytes(h, (Bytes){.data = m->build_id, .size = m->build_id_size});
    return hash_bytes(hash_u64(h, m->inode ^ m->start), m->path);
}

static int loaded_names_elf(SymbolResolver *resolver, LoadedNames *loaded) {
    _cleanup_(found_elf_done) FoundElf found = {};
    _cleanup_(name_build_done) NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_START);
    r = find_elf(&resolver->find, &loaded->mapping, &found);
    if (r < 0)
        return r;
    loaded->missing = found.code          ? FRAME_UNNAMED
                      : found.is_replaced ? FRAME_REPLACED
                                          : FRAME_NO_FILE;
    if (!found.code)
        return 0;
    elf_names_add_segments(found.code, &build);
    r = elf_names_add(found.symbols ? found.symbols : found.code, &build);
    if (r == 0 && found.symbols)
        r = plt_names_add(elf_file_view(found.code), &build);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = stored_table_make(&build, &loaded->table);
    loaded->has_table = r == 0;
    return r;
}

static int loaded_names_kernel(SymbolResolver *resolver, LoadedNames *loaded) {
    ElfBuildId id = {.size = loaded->mapping.build_id_size};
    _cleanup_(name_build_done) NameBuild build;
    int r;

    memcpy(id.bytes, loaded->mapping.build_id, sizeof(id.bytes));
    name_build_init(&build, NAME_BY_START);
    r = loaded->mapping.start > 0 ? kernel_find(&resolver->find, &id, &build) : -ENOENT;
    if (r == 0)
        r = stored_table_make(&build, &loaded->table);
    loaded->has_table = r == 0;
    return r == -ENOMEM ? r : 0;
}

static int loaded_names_generated(SymbolResolver *resolver, LoadedNames *loaded) {
    _cleanup_(name_build_done) NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_TIME);
    r = jit_find(&resolver->find, loaded->mapping.pid, &build);
    loaded->missing = r == 0 ? FRAME_UNNAMED : FRAME_NO_FILE;
    if (r == 0)
        r = stored_table_make(&build, &loaded->table);
    loaded->has_table = r == 0;
    return r == -ENOMEM ? r : 0;
}

static int loaded_names_load(SymbolResolver *resolver, LoadedNames *loaded) {
    loaded->is_done = true;
    switch (loaded->mapping.kind) {
    case FRAME_USER:
    case FRAME_VDSO:
        return loaded_names_elf(resolver, loaded);
    case FRAME_KERNEL:
        return loaded_names_kernel(resolver, loaded);
    case FRAME_JIT:
        return loaded_names_generated(resolver, loaded);
    default:
        return 0;
    }
}

static uint8_t *loaded_names_copy(Bytes path) {
    uint8_t *copy = malloc(path.size + 1);

    if (copy) {
        if (path.size > 0)
            memcpy(copy, path.data, path.size);
        copy[path.size] = 0;
    }
    return copy;
}

LoadedNames *loaded_names_get(SymbolResolver *resolver, const FrameMapping *mapping) {
    uint64_t key = loaded_names_key(mapping);
    LoadedNames *row;
    uint8_t *path;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&resolver->by_mapping, key, &probe)) > 0;)
        if (loaded_names_same(&resolver->loaded[number - 1].mapping, mapping)) {
            row = &resolver->loaded[number - 1];
            return !row->is_done && loaded_names_load(resolver, row) < 0 ? NULL : row;
        }
    path = loaded_names_copy(mapping->path);
    row = path ? hash_index_append(&resolver->by_mapping, key, &resolver->loaded) : NULL;
    if (!row) {
        free(path);
        return NULL;
    }
    row->mapping = *mapping;
    row->mapping.path.data = path;
    row->mapping.dso = (Bytes){};
    row->missing = FRAME_NO_FILE;
    return loaded_names_load(resolver, row) < 0 ? NULL : row;
}

void loaded_names_forget_generated(SymbolResolver *resolver) {
    for (size_t i = 0; i < resolver->by_mapping.n; i++) {
        LoadedNames *loaded = &resolver->loaded[i];

        if (loaded->mapping.kind != FRAME_JIT)
            continue;
        stored_table_done(&loaded->table);
        loaded->is_done = loaded->has_table = false;
    }
}

void loaded_names_done(SymbolResolver *resolver) {
    for (size_t i = 0; i < resolver->by_mapping.n; i++) {
        stored_table_done(&resolver->loaded[i].table);
        free((void *)resolver->loaded[i].mapping.path.data);
    }
    free(resolver->loaded);
    hash_index_done(&resolver->by_mapping);
}

bool loaded_names_find(const LoadedNames *loaded, uint64_t address, NameFound *ret) {
    uint64_t place = address;

    if (!loaded->has_table)
        return false;
    if (loaded->mapping.kind == FRAME_KERNEL)
        place = address - loaded->mapping.start;
    else if (loaded->mapping.kind != FRAME_JIT &&
             !name_table_address(&loaded->table.names, address, &place))
        return false;
    if (!name_table_find(&loaded->table.names, place, ret))
        return false;
    ret->start = address - (place - ret->start);
    return true;
}
