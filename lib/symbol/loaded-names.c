/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "symbol/elf/plt.h"
#include "symbol/find/debug-link.h"
#include "symbol/jit/jit-find.h"
#include "symbol/kernel/kernel-find.h"
#include "symbol/kernel/kernel-module.h"
#include "symbol/resolver-private.h"
#include "symbol/table/kept-table.h"

/*
 * Mappings are looked up once until the resolver forgets them, found or not; those of files without
 * a build id again in each profile if they may have changed. A table of a file has the addresses of
 * its ELF headers; that of a kernel counts from the symbol that its map is named after.
 */

static bool loaded_names_same(const FrameMapping *a, const FrameMapping *b) {
    return a->kind == b->kind && a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 && a->major == b->major &&
           a->minor == b->minor && a->inode == b->inode && a->generation == b->generation &&
           a->pid == b->pid && a->start == b->start && bytes_equal(a->path, b->path);
}

static uint64_t loaded_names_hash(const FrameMapping *m) {
    uint64_t h = hash_u64(hash_seed(), (uint64_t)m->pid << 8 | (uint64_t)m->kind);

    h = hash_bytes(h, (Bytes){.data = m->build_id, .size = m->build_id_size});
    return hash_bytes(hash_u64(h, m->inode ^ m->start), m->path);
}

/* A table that was kept is mapped from then on, which takes no memory of our own. */
static void loaded_names_keep(SymbolResolver *resolver, Bytes build_id, const TableKey *key,
                              LoadedNames *loaded) {
    const char *folder = resolver->options.table_cache;
    StoredTable kept;

    if (!resolver->is_cache_trimmed)
        kept_table_trim(folder, KEPT_TABLE_BYTES_MAX);
    resolver->is_cache_trimmed = true;
    kept_table_save(folder, build_id, key, &loaded->table);
    if (kept_table_load(folder, build_id, key, &kept) < 0)
        return;
    stored_table_done(&loaded->table);
    loaded->table = kept;
}

static int loaded_names_make_elf(const FoundElf *found, StoredTable *ret) {
    _cleanup_(name_build_done) NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_START);
    elf_names_add_segments(found->code, &build);
    r = elf_names_add(found->symbols ? found->symbols : found->code, &build);
    if (r == 0 && found->symbols)
        r = plt_names_add(elf_file_view(found->code), &build);
    return r == 0 ? stored_table_make(&build, ret) : r;
}

/* The build id of the files that were found; empty if their table cannot be kept. */
static Bytes loaded_names_key(const FoundElf *found, ElfBuildId *id, TableKey *ret) {
    const FileIdentity files[] = {found->code_identity, found->symbols_identity};

    static_assert(sizeof(files) == sizeof(ret->words), "a key holds two identities");
    *id = elf_file_build_id(found->code);
    memcpy(ret->words, files, sizeof(files));
    return (Bytes){.data = id->bytes, .size = found->is_stable ? id->size : 0};
}

static void loaded_names_open_lines(const SymbolResolver *resolver, const FoundElf *found,
                                    LoadedNames *loaded) {
    int fd = found_elf_lines(found);
    const ElfFile *file =
        found->symbols && elf_file_fd(found->symbols) == fd ? found->symbols : found->code;

    if (fd < 0)
        return;
    loaded->lines = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    loaded->lines_alternate = debug_link_open_alternate(resolver->find.root, file);
}

static int loaded_names_elf(SymbolResolver *resolver, LoadedNames *loaded) {
    _cleanup_(found_elf_done) FoundElf found = {};
    int r = find_elf(&resolver->find, &loaded->mapping, &found);
    ElfBuildId id;
    TableKey key;
    Bytes name;

    if (r < 0)
        return r;
    loaded->missing = found.code          ? FRAME_UNNAMED
                      : found.is_replaced ? FRAME_REPLACED
                                          : FRAME_NO_FILE;
    if (!found.code)
        return 0;
    loaded->file = found.code_identity;
    if (resolver->options.inlined)
        loaded_names_open_lines(resolver, &found, loaded);
    name = loaded_names_key(&found, &id, &key);
    if (kept_table_load(resolver->options.table_cache, name, &key, &loaded->table) < 0) {
        r = loaded_names_make_elf(&found, &loaded->table);
        if (r == 0)
            loaded_names_keep(resolver, name, &key, loaded);
    }
    loaded->has_table = r == 0;
    return r == -ENOMEM ? r : 0;
}

/* The map of a kernel starts at the symbol that ends its name: "[kernel.kallsyms]_stext". */
static bool loaded_names_starts_at_stext(const FrameMapping *kernel) {
    static const char end[] = "]_stext";
    size_t n = sizeof(end) - 1;

    return kernel->path.size >= n && memcmp(kernel->path.data + kernel->path.size - n, end, n) == 0;
}

/* Counted from one symbol, the names of a kernel depend on its build id alone. */
static int loaded_names_kernel(SymbolResolver *resolver, LoadedNames *loaded) {
    bool from_stext = loaded_names_starts_at_stext(&loaded->mapping);
    const TableKey key = {{from_stext ? 2 : 1}};
    ElfBuildId id = {.size = loaded->mapping.build_id_size};
    Bytes name = {.data = loaded->mapping.build_id, .size = id.size};
    _cleanup_(name_build_done) NameBuild build;
    int r = -ENOENT;

    memcpy(id.bytes, loaded->mapping.build_id, sizeof(id.bytes));
    name_build_init(&build, NAME_BY_START);
    if (loaded->mapping.start > 0 &&
        kept_table_load(resolver->options.table_cache, name, &key, &loaded->table) == 0)
        r = 0;
    else if (loaded->mapping.start > 0) {
        r = kernel_find(&resolver->find, &id, from_stext ? "_stext" : "_text", &build);
        if (r == 0)
            r = stored_table_make(&build, &loaded->table);
        if (r == 0)
            loaded_names_keep(resolver, name, &key, loaded);
    }
    loaded->has_table = r == 0;
    return r == -ENOMEM ? r : 0;
}

static int loaded_names_module(SymbolResolver *resolver, LoadedNames *loaded) {
    const FrameMapping *m = &loaded->mapping;
    _cleanup_(name_build_done) NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_START);
    r = kernel_module_find(&resolver->find, m, &build);
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
    case FRAME_MODULE:
        return loaded_names_module(resolver, loaded);
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

/* Whether the table still holds for samples of another time. A file without a build id may have
 * been overwritten in place since it was read. While its path leads to another file or to none,
 * nothing is known to have changed. */
static bool loaded_names_hold(const SymbolResolver *resolver, const LoadedNames *loaded,
                              const FrameMapping *mapping) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    FileIdentity now;
    int r;

    if (mapping->kind != FRAME_USER || mapping->build_id_size > 0)
        return true;
    if (!loaded->has_table)
        return false;
    r = find_look(&resolver->find, mapping, &now);
    if (r < 0 || now.device != loaded->file.device || now.inode != loaded->file.inode)
        return true;
    return memcmp(&now, &loaded->file, sizeof(now)) == 0 &&
           find_mapped(&resolver->find, mapping, &file, &now) == 0;
}

/* The row is looked for again. */
static void loaded_names_forget(LoadedNames *loaded) {
    stored_table_done(&loaded->table);
    closep(&loaded->lines);
    closep(&loaded->lines_alternate);
    loaded->is_done = loaded->has_table = false;
}

LoadedNames *loaded_names_get(SymbolResolver *resolver, const FrameMapping *mapping) {
    uint64_t key = loaded_names_hash(mapping);
    LoadedNames *row;
    uint8_t *path;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&resolver->by_mapping, key, &probe)) > 0;)
        if (loaded_names_same(&resolver->loaded[number - 1].mapping, mapping)) {
            row = &resolver->loaded[number - 1];
            if (row->used != resolver->namings && !loaded_names_hold(resolver, row, mapping))
                loaded_names_forget(row);
            row->mapping.sampled_ns = mapping->sampled_ns;
            row->used = resolver->namings;
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
    row->lines = row->lines_alternate = -1;
    row->used = resolver->namings;
    return loaded_names_load(resolver, row) < 0 ? NULL : row;
}

void loaded_names_forget_generated(SymbolResolver *resolver) {
    for (size_t i = 0; i < resolver->by_mapping.n; i++) {
        LoadedNames *loaded = &resolver->loaded[i];

        if (loaded->mapping.kind != FRAME_JIT)
            continue;
        loaded_names_forget(loaded);
    }
}

static void loaded_names_drop(LoadedNames *loaded) {
    loaded_names_forget(loaded);
    free((void *)loaded->mapping.path.data);
}

void loaded_names_done(SymbolResolver *resolver) {
    for (size_t i = 0; i < resolver->by_mapping.n; i++)
        loaded_names_drop(&resolver->loaded[i]);
    free(resolver->loaded);
    hash_index_done(&resolver->by_mapping);
}

static size_t loaded_names_bytes(const LoadedNames *loaded) {
    return sizeof(*loaded) + loaded->mapping.path.size + loaded->table.image.allocated;
}

static int loaded_names_compare_use(const void *a, const void *b) {
    const LoadedNames *x = a, *y = b;

    return (x->used < y->used) - (x->used > y->used);
}

/* The index has the numbers of the rows, so it is made again of those that stay. */
void loaded_names_limit(SymbolResolver *resolver, size_t bytes_max, size_t n_max) {
    LoadedNames *rows = resolver->loaded;
    size_t n = resolver->by_mapping.n, bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += loaded_names_bytes(&rows[i]);
    if (n <= n_max && bytes <= bytes_max)
        return;
    qsort(rows, n, sizeof(*rows), loaded_names_compare_use);
    hash_index_done(&resolver->by_mapping);
    bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t kept = resolver->by_mapping.n, each = loaded_names_bytes(&rows[i]);
        bool fits = kept < n_max && each <= bytes_max - bytes;

        if (fits &&
            hash_index_add(&resolver->by_mapping, loaded_names_hash(&rows[i].mapping)) == 0) {
            rows[kept] = rows[i];
            bytes += each;
        } else
            loaded_names_drop(&rows[i]);
    }
}

bool loaded_names_address(const LoadedNames *loaded, uint64_t address, uint64_t *ret) {
    switch (loaded->mapping.kind) {
    case FRAME_KERNEL:
    case FRAME_MODULE:
        *ret = address - loaded->mapping.start;
        return true;
    case FRAME_JIT:
        *ret = address;
        return true;
    default:
        return loaded->has_table && name_table_address(&loaded->table.names, address, ret);
    }
}

bool loaded_names_find(const LoadedNames *loaded, uint64_t address, NameFound *ret) {
    uint64_t place;

    if (!loaded->has_table || !loaded_names_address(loaded, address, &place) ||
        !name_table_find(&loaded->table.names, place, ret))
        return false;
    ret->start = address - (place - ret->start);
    return true;
}
