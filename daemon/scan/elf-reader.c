/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "scan/cache/elf-cache.h"
#include "scan/cache/vdso-file.h"
#include "scan/elf-helper.h"
#include "scan/image-file.h"
#include "scan/process-text.h"
#include "util/clock.h"
#include "util/hash.h"

/*
 * Opens a file and uses the cached result as long as the file is the same; otherwise profd-elf
 * reads it. The kernel could read the build id (PROCMAP_QUERY), but it reads all notes that a file
 * claims to have in one go that cannot be interrupted. The descriptor is only passed on: the
 * recorder reads no byte of the file.
 */

#define TICK_MAX_NS (20 * (int64_t)NS_PER_MS)

struct ElfReader {
    Keeper *keeper;
    ProcessReader *processes;
    int proc;
    ImageOpener *opener;
    ElfHelper *helper;
    ElfCache cache;
};

int elf_reader_new(Keeper *keeper, ProcessReader *processes, int proc, ElfReader **ret) {
    _cleanup_(elf_reader_freep) ElfReader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader)
        return -ENOMEM;
    reader->keeper = keeper;
    reader->processes = processes;
    reader->proc = proc;
    r = image_opener_new(keeper, processes, proc, &reader->opener);
    if (r == 0)
        r = elf_helper_new(keeper, proc, &reader->helper);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(reader);
    return 0;
}

ElfReader *elf_reader_free(ElfReader *reader) {
    if (!reader)
        return NULL;
    elf_helper_free(reader->helper);
    image_opener_free(reader->opener);
    free(reader);
    return NULL;
}

uint64_t elf_reader_ready_ns(const ElfReader *reader) {
    return elf_helper_ready_ns(reader->helper);
}

bool elf_reader_lacks_helper(const ElfReader *reader) {
    return elf_helper_is_missing(reader->helper);
}

uint64_t elf_reader_cpu_ns(const ElfReader *reader) {
    return elf_helper_cpu_ns(reader->helper);
}

/* Whether the result stays valid as long as the file does not change. */
static bool elf_reader_is_final(int r) {
    static const int results[] = {0,        -ENODATA, -ENOEXEC,   -ENOTSUP,
                                  -EBADMSG, -E2BIG,   -ECANCELED, -ENOMEM};

    for (size_t i = 0; i < ARRAY_SIZE(results); i++)
        if (r == results[i])
            return true;
    return false;
}

static int64_t elf_reader_ns_of(const struct statx_timestamp *t) {
    return t->tv_sec * (int64_t)NS_PER_SECOND + t->tv_nsec;
}

/* Whether the content may have changed since the file was opened. Links and owners do not matter.
 */
static bool elf_reader_has_changed(int fd, const KeeperFileId *id) {
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &st) == 0 &&
           (st.stx_size != id->size || elf_reader_ns_of(&st.stx_mtime) != id->mtime_ns);
}

/* Returns what the result r of the helper means for the file. */
static int elf_reader_conclude(ElfReader *reader, const MappedImage *image, const KeeperFileId *id,
                               int fd, int r) {
    if (r == -ETIMEDOUT)
        image_opener_avoid(reader->opener, image);
    /* It may have read one half of the old content and one of the new. */
    return elf_reader_is_final(r) && elf_reader_has_changed(fd, id) ? -EAGAIN : r;
}

/*
 * A number for what the file contains: 0 is that of no content. The kernel takes the time of a
 * change from a clock that ticks up to 100 times a second, so a second change soon after the first
 * may leave no trace.
 */
static uint64_t elf_reader_version_of(const KeeperFileId *id) {
    int64_t age_ns = (int64_t)clock_ns(CLOCK_REALTIME) - id->ctime_ns;

    if (age_ns >= 0 && age_ns < TICK_MAX_NS)
        return 0;
    return hash_u64(hash_u64(id->size, (uint64_t)id->mtime_ns), (uint64_t)id->ctime_ns) | 1;
}

int elf_reader_check(ElfReader *reader, const MappedImage *image, uint64_t version,
                     uint64_t *ret_changed_ns) {
    _cleanup_close_ int fd = -1;
    KeeperFileId id;
    int r = image_opener_open(reader->opener, image, &id, &fd);
    int64_t offset_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));

    if (r < 0)
        return r;
    *ret_changed_ns = (uint64_t)MAX(id.ctime_ns - offset_ns, (int64_t)0);
    return version == 0 || elf_reader_version_of(&id) != version;
}

int elf_reader_build_id(ElfReader *reader, const MappedImage *image, BuildId *ret,
                        uint64_t *ret_version) {
    _cleanup_close_ int fd = -1;
    const ElfFact *fact;
    KeeperFileId id;
    int r = image_opener_open(reader->opener, image, &id, &fd);

    *ret_version = 0;
    if (r < 0)
        return r;
    *ret_version = elf_reader_version_of(&id);
    fact = elf_cache_find(&reader->cache, &id, ELF_BUILD_ID);
    if (fact) {
        *ret = fact->build_id;
        return fact->result;
    }
    r = elf_helper_build_id(reader->helper, fd, ret);
    r = elf_reader_conclude(reader, image, &id, fd, r);
    if (elf_reader_is_final(r) && *ret_version != 0)
        elf_cache_add(&reader->cache, &id, ELF_BUILD_ID, r, ret);
    return r;
}

/* Reads the table of an opened file. Refusals are remembered here; the table cache has the tables.
 */
static int elf_reader_read_table(ElfReader *reader, const MappedImage *image,
                                 const KeeperFileId *id, int fd, MappedTable **ret) {
    _cleanup_(mapped_table_freep) MappedTable *table = NULL;
    const ElfFact *fact = elf_cache_find(&reader->cache, id, ELF_UNWIND);
    int r;

    if (fact)
        return fact->result;
    r = elf_helper_table(reader->helper, fd, &table);
    r = elf_reader_conclude(reader, image, id, fd, r);
    if (r == 0)
        *ret = TAKE_PTR(table);
    else if (elf_reader_is_final(r))
        elf_cache_add(&reader->cache, id, ELF_UNWIND, r, NULL);
    return r;
}

/* A copy of the vdso, with the identity that the check for changes expects. */
static int elf_reader_open_vdso(KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    struct statx st;
    int r = vdso_open(&fd);

    if (r < 0)
        return r;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_MTIME, &st) < 0)
        return -errno;
    *ret_id = (KeeperFileId){.size = st.stx_size, .mtime_ns = elf_reader_ns_of(&st.stx_mtime)};
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int elf_reader_table(ElfReader *reader, const MappedImage *image, TableCache *tables,
                     TableAnswer *ret) {
    _cleanup_close_ int fd = -1;
    int r;

    *ret = (TableAnswer){.image = *image};
    ret->image.path = NULL;
    r = vdso_is_mapped(image) ? elf_reader_open_vdso(&ret->id, &fd)
                              : image_opener_open(reader->opener, image, &ret->id, &fd);
    if (r == 0 && !table_cache_has(tables, &ret->id)) {
        r = elf_reader_read_table(reader, image, &ret->id, fd, &ret->table);
        ret->is_final = r < 0 && elf_reader_is_final(r);
    } else
        /* No ELF file is mapped there, which does not change. */
        ret->is_final = r == -ENODATA || r == -ENOEXEC;
    ret->result = r;
    return r;
}

static uid_t elf_reader_owner(int fd) {
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &st) == 0 ? st.stx_uid
                                                                                  : (uid_t)-1;
}

/* Whether all is known of an opened file: *ret_result is what is. */
static bool elf_reader_knows_symbols(ElfReader *reader, const KeeperFileId *id,
                                     const SymbolsFilter *filter, SymbolsAnswer *answer,
                                     int *ret_result) {
    const ElfFact *fact = elf_cache_find(&reader->cache, id, ELF_BUILD_ID);

    if (fact && fact->result < 0) {
        *ret_result = fact->result;
        return true;
    }
    if (fact && filter->has(filter->userdata, &fact->build_id, answer->owner)) {
        answer->build_id = fact->build_id;
        *ret_result = 0;
        return true;
    }
    fact = elf_cache_find(&reader->cache, id, ELF_SYMBOLS);
    if (!fact)
        return false;
    *ret_result = fact->result;
    return true;
}

static int elf_reader_read_symbols(ElfReader *reader, const MappedImage *image,
                                   const KeeperFileId *id, int fd, const SymbolsFilter *filter,
                                   SymbolsAnswer *answer) {
    _cleanup_close_ int file = -1;
    uint64_t bytes;
    int r;

    if (elf_reader_knows_symbols(reader, id, filter, answer, &r))
        return r;
    r = elf_helper_symbols(reader->helper, fd, &answer->build_id, &file, &bytes);
    r = elf_reader_conclude(reader, image, id, fd, r);
    if (r < 0) {
        if (elf_reader_is_final(r))
            elf_cache_add(&reader->cache, id, ELF_SYMBOLS, r, NULL);
        return r;
    }
    elf_cache_add(&reader->cache, id, ELF_BUILD_ID, 0, &answer->build_id);
    if (filter->has(filter->userdata, &answer->build_id, answer->owner))
        return 0;
    answer->fd = TAKE_FD(file);
    answer->bytes = bytes;
    return 0;
}

int elf_reader_symbols(ElfReader *reader, const MappedImage *image, const SymbolsFilter *filter,
                       SymbolsAnswer *ret) {
    _cleanup_close_ int fd = -1;
    KeeperFileId id;
    int r;

    *ret = (SymbolsAnswer){.fd = -1, .is_vdso = vdso_is_mapped(image)};
    (void)snprintf(ret->path, sizeof(ret->path), "%s", image->path);
    r = ret->is_vdso ? elf_reader_open_vdso(&id, &fd)
                     : image_opener_open(reader->opener, image, &id, &fd);
    if (r == 0) {
        ret->owner = ret->is_vdso ? 0 : elf_reader_owner(fd);
        r = elf_reader_read_symbols(reader, image, &id, fd, filter, ret);
    }
    ret->result = r;
    return r;
}

/* A perf map that an earlier process of the pid left says nothing about this one. A jitdump is
 * mapped, so it is of the process. */
static int elf_reader_refuse_old_map(CodeMapAnswer *answer) {
    struct statx st;

    if (statx(answer->source, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME, &st) == 0 &&
        clock_is_since_start((uint64_t)elf_reader_ns_of(&st.stx_mtime), answer->start_ns))
        return 0;
    closep(&answer->source);
    return -ENOENT;
}

static int elf_reader_open_code_map(ElfReader *reader, const MappedImage *image,
                                    CodeMapAnswer *answer) {
    uint32_t inner = 0;
    int r = process_reader_start(reader->processes, image->pid, &answer->start_ns);

    if (r == 0 && process_reader_is_late(reader->processes, image->pid))
        r = -ESRCH;
    if (r == 0 && image->end == 0)
        r = process_inner_pid(reader->proc, image->pid, &inner);
    if (r == 0)
        r = keeper_open_code_map(reader->keeper, image->pid, inner,
                                 image->end > 0 ? image->start : 0, image->end, &answer->source);
    return r == 0 && image->end == 0 ? elf_reader_refuse_old_map(answer) : r;
}

/* Reads the file if it was written to since it was read. A helper that crashes, is ended or is not
 * there yet does not read it, so what was written stays new. */
static int elf_reader_read_code_map(ElfReader *reader, CodeMapAnswer *answer) {
    struct statx st;
    int r;

    answer->is_unread = false;
    if (statx(answer->source, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME,
              &st) < 0 ||
        (answer->size == st.stx_size && answer->mtime_ns == elf_reader_ns_of(&st.stx_mtime)))
        return 0;
    r = elf_helper_code_map(reader->helper, answer->source, &answer->fd, &answer->bytes);
    answer->is_unread = r == -ECANCELED || r == -ENOMEM || (r < 0 && !elf_reader_is_final(r));
    if (!answer->is_unread) {
        answer->size = st.stx_size;
        answer->mtime_ns = elf_reader_ns_of(&st.stx_mtime);
    }
    /* The program may not have written a line yet. */
    return r == -ENODATA ? 0 : r;
}

int elf_reader_code_map(ElfReader *reader, const MappedImage *image, CodeMapAnswer *answer) {
    uint64_t start_ns;
    int r = answer->source >= 0 ? 0 : elf_reader_open_code_map(reader, image, answer);

    answer->pid = image->pid;
    /* Another process may have the pid by now. */
    answer->has_ended = process_reader_start(reader->processes, image->pid, &start_ns) < 0 ||
                        start_ns != answer->start_ns;
    if (r == 0)
        r = elf_reader_read_code_map(reader, answer);
    answer->result = r;
    return r;
}
