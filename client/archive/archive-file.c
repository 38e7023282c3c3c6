/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/archive/archive-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduce/reduce.h"
#include "symbol/find/build-id-folder.h"
#include "symbol/find/find.h"
#include "symbol/find/open-regular.h"
#include "symbol/jit/jit-find.h"
#include "symbol/kernel/kernel-module.h"
#include "util/clock.h"
#include "util/hash-index.h"

/*
 * Files are found as views find them, so one that is not shown to be the sampled one is left out.
 * They are written as perf's build-id cache has them: the code as .build-id/xx/REST/elf, a separate
 * debug file beside it as debug, the kernel's names as kallsyms. Names of generated code are
 * written as profd keeps them: maps/PID-START.map, with the start of the process in microseconds.
 */

enum {
    ARCHIVE_KALLSYMS_MAX = 64 << 20,
    ARCHIVE_REDUCED_MAX = 256 << 20,
    ARCHIVE_NAME_MAX = 100,
    ARCHIVE_BLOCK = 1 << 16,
};

typedef struct ArchiveWork {
    const TarWriter *tar;
    const ArchiveOptions *options;
    FindOptions find;
    HashIndex index; /* of the build ids that were looked at */
    ElfBuildId *ids;
    HashIndex pids_index; /* of the processes whose generated code was looked at */
    uint32_t *pids;
    ArchiveCount count;
} ArchiveWork;

static void archive_work_done(ArchiveWork *work) {
    hash_index_done(&work->index);
    free(work->ids);
    hash_index_done(&work->pids_index);
    free(work->pids);
}

/* 1: this build id is new; 0: it was looked at before; -ENOMEM. */
static int archive_note_id(ArchiveWork *work, const ElfBuildId *id) {
    uint64_t key = hash_bytes(0, (Bytes){.data = id->bytes, .size = id->size});
    size_t probe = 0;
    ElfBuildId *added;
    uint32_t number;

    while ((number = hash_index_next(&work->index, key, &probe)) > 0)
        if (memcmp(&work->ids[number - 1], id, sizeof(*id)) == 0)
            return 0;
    added = hash_index_append(&work->index, key, &work->ids);
    if (!added)
        return -ENOMEM;
    *added = *id;
    return 1;
}

static void archive_name(const ElfBuildId *id, const char *file, char ret[ARCHIVE_NAME_MAX]) {
    size_t n = (size_t)snprintf(ret, ARCHIVE_NAME_MAX, ".build-id/%02x/", id->bytes[0]);

    for (size_t i = 1; i < id->size; i++)
        n += (size_t)snprintf(ret + n, ARCHIVE_NAME_MAX - n, "%02x", id->bytes[i]);
    (void)snprintf(ret + n, ARCHIVE_NAME_MAX - n, "/%s", file);
}

/* Packs a file, or with --reduced only its symbols, where it can be reduced. */
static int archive_write_elf(ArchiveWork *work, const ElfBuildId *id, const char *file,
                             const ElfFile *elf) {
    _cleanup_(buffer_done) Buffer reduced = {};
    int fd = elf_file_fd(elf), r;
    char name[ARCHIVE_NAME_MAX];

    archive_name(id, file, name);
    work->count.files++;
    if (work->options->reduced) {
        r = reduce_elf(elf_file_view(elf)->source, (Bytes){.data = id->bytes, .size = id->size},
                       ARCHIVE_REDUCED_MAX, &reduced);
        if (r == 0)
            return tar_write_bytes(work->tar, name, buffer_bytes(&reduced));
        if (r == -ENOMEM)
            return r;
    }
    return fd < 0 ? tar_write_bytes(work->tar, name, elf_file_bytes(elf))
                  : tar_write_file(work->tar, name, fd);
}

static int archive_write_mapping(ArchiveWork *work, const FrameMapping *mapping,
                                 const ElfBuildId *id) {
    FoundElf found = {};
    int r = find_elf(&work->find, mapping, &found);

    /* A separate debug file is of no use alone: it does not say where the code is in the file. */
    if (r == 0 && found.code) {
        r = archive_write_elf(work, id, mapping->kind == FRAME_VDSO ? "vdso" : "elf", found.code);
        if (r == 0 && found.symbols)
            r = archive_write_elf(work, id, "debug", found.symbols);
    } else if (r == 0)
        work->count.missing++;
    found_elf_done(&found);
    return r;
}

/* Modules are often compressed, and packed as they were before. */
static int archive_write_module(ArchiveWork *work, const FrameMapping *mapping,
                                const ElfBuildId *id) {
    _cleanup_(module_file_done) ModuleFile file = {};
    int r = kernel_module_open(&work->find, mapping, &file);

    return r == 0         ? archive_write_elf(work, id, "elf", file.elf)
           : r == -ENOENT ? archive_write_mapping(work, mapping, id)
                          : r;
}

/* The kernel that runs here has its build id among its notes. */
static bool archive_is_running_kernel(const ElfBuildId *id) {
    _cleanup_close_ int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
    uint8_t notes[4096];
    ssize_t n = fd >= 0 ? read(fd, notes, sizeof(notes)) : -1;
    Bytes bytes = {.data = notes, .size = n > 0 ? (size_t)n : 0};
    ElfBuildId running = {};

    return elf_notes_find_id(bytes, sizeof(uint32_t), false, &running) &&
           running.size == id->size && memcmp(running.bytes, id->bytes, id->size) == 0;
}

/* Files of /proc have no size, so all of it is read. */
static int archive_read_kallsyms(int fd, Buffer *ret) {
    while (ret->size <= ARCHIVE_KALLSYMS_MAX) {
        uint8_t *p = buffer_reserve(ret, ARCHIVE_BLOCK);
        ssize_t n = p ? read(fd, p, ARCHIVE_BLOCK) : -1;

        if (!p)
            return -ENOMEM;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        buffer_commit(ret, (size_t)n);
    }
    return -EFBIG;
}

/* A user who may not see addresses gets zeros. */
static bool archive_has_addresses(const Buffer *text) {
    size_t n = 0;

    while (n < text->size && text->data[n] == '0')
        n++;
    return n < 2 * sizeof(uint64_t) && n < text->size;
}

static int archive_open_kallsyms(const ArchiveWork *work, const ElfBuildId *id, int *ret_fd) {
    char path[FIND_PATH_MAX];
    FileIdentity identity;

    for (size_t i = 0; i < work->options->n_caches; i++)
        if (build_id_path(work->options->caches[i], id, "/kallsyms", path) &&
            open_regular(path, ret_fd, &identity) == 0)
            return 0;
    *ret_fd = work->options->fetch ? work->options->fetch(id->bytes, id->size, work->options->arg)
                                   : -ENOENT;
    if (*ret_fd >= 0)
        return 0;
    *ret_fd = archive_is_running_kernel(id) ? open("/proc/kallsyms", O_RDONLY | O_CLOEXEC) : -1;
    return *ret_fd < 0 ? -ENOENT : 0;
}

static int archive_write_kernel(ArchiveWork *work, const ElfBuildId *id) {
    _cleanup_(buffer_done) Buffer text = {};
    _cleanup_close_ int fd = -1;
    char name[ARCHIVE_NAME_MAX];
    int r = archive_open_kallsyms(work, id, &fd);

    work->count.has_kernel = true;
    if (r == 0)
        r = archive_read_kallsyms(fd, &text);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (!archive_has_addresses(&text))
        return 0;
    work->count.kernel = true;
    archive_name(id, "kallsyms", name);
    return tar_write_bytes(work->tar, name, buffer_bytes(&text));
}

/* Generated code that its process did not name has no file, so it is not missing. */
static int archive_write_map(ArchiveWork *work, uint32_t pid) {
    _cleanup_(jit_lines_done) JitLines map = {};
    char name[ARCHIVE_NAME_MAX];
    size_t probe = 0;
    uint32_t number, *added;
    int r;

    while ((number = hash_index_next(&work->pids_index, pid, &probe)) > 0)
        if (work->pids[number - 1] == pid)
            return 0;
    added = hash_index_append(&work->pids_index, pid, &work->pids);
    if (!added)
        return -ENOMEM;
    *added = pid;
    r = jit_find_lines(&work->find, pid, &map);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    snprintf(name, sizeof(name), "maps/%" PRIu32 "-%" PRIu64 ".map", pid, map.start_ns / NS_PER_US);
    work->count.files++;
    return tar_write_bytes(work->tar, name, buffer_bytes(&map.lines));
}

static int archive_take_mapping(ArchiveWork *work, const FrameMapping *mapping) {
    bool is_file =
        mapping->kind == FRAME_USER || mapping->kind == FRAME_MODULE || mapping->kind == FRAME_VDSO;
    ElfBuildId id = {.size = mapping->build_id_size};
    int r;

    if (mapping->kind == FRAME_JIT)
        return archive_write_map(work, mapping->pid);
    if (!is_file && mapping->kind != FRAME_KERNEL)
        return 0;
    memcpy(id.bytes, mapping->build_id, sizeof(id.bytes));
    if (id.size < 2) {
        work->count.nameless++;
        return 0;
    }
    r = archive_note_id(work, &id);
    if (r <= 0)
        return r;
    if (mapping->kind == FRAME_MODULE)
        return archive_write_module(work, mapping, &id);
    return is_file ? archive_write_mapping(work, mapping, &id) : archive_write_kernel(work, &id);
}

int archive_write_files(const TarWriter *tar, const ArchiveOptions *options, const Profile *profile,
                        ArchiveCount *ret) {
    uint32_t n = frame_table_n_mappings(profile->frames);
    _cleanup_free_ bool *used = calloc((size_t)n + 1, sizeof(*used));
    _cleanup_(archive_work_done) ArchiveWork work = {.tar = tar,
                                                     .options = options,
                                                     .find = {.root = "",
                                                              .caches = options->caches,
                                                              .n_caches = options->n_caches,
                                                              .local_files = true,
                                                              .fetch = options->fetch,
                                                              .fetch_maps = options->fetch_maps,
                                                              .fetch_arg = options->arg}};
    int r = used ? 0 : -ENOMEM;

    find_set_times(&work.find, profile, options->is_of_this_host);

    for (uint32_t i = STACK_ROOT + 1; r == 0 && i < stack_tree_n_nodes(profile->stacks); i++) {
        uint32_t frame = stack_tree_node(profile->stacks, i)->frame;

        used[frame_table_frame(profile->frames, frame)->mapping] = true;
    }
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (used[i])
            r = archive_take_mapping(&work, frame_table_mapping(profile->frames, i));
    if (r < 0)
        return r;
    *ret = work.count;
    return 0;
}
