/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/find/find.h"

#include <elf.h>
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "symbol/find/build-id-folder.h"
#include "symbol/find/debug-link.h"
#include "util/clock.h"
#include "util/macro.h"

/*
 * The mapped file at its path comes first. If it has no .symtab, its separate debug file is looked
 * for, then the caches, then the debug servers. The search ends at the first file that has names
 * for all of the code; if there is none, the best of the files counts.
 */

/* A recording is written that long after its last sample, if not much is idle at its end, or as
 * much before, if the clock of perf is ahead. */
#define WRITING_MAX_NS (10 * NS_PER_SECOND)

typedef struct FindState {
    const FindOptions *options;
    ElfBuildId id;
    FoundElf *found;
    ElfNaming naming; /* of the best file so far */
} FindState;

static ElfBuildId find_id_of(const FrameMapping *mapping) {
    ElfBuildId id = {.size = mapping->build_id_size};

    memcpy(id.bytes, mapping->build_id, sizeof(id.bytes));
    return id;
}

/* Old recordings have a field of 20 bytes for each build id, with zeros behind shorter ones. */
static bool find_same_id(const ElfBuildId *a, const ElfBuildId *b) {
    return a->size > 0 && b->size > 0 && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0 &&
           (a->size == b->size || a->size == ELF_BUILD_ID_MAX || b->size == ELF_BUILD_ID_MAX);
}

/* If a recording has no wall clock, its times count from the boot, but not exactly: the clock of
 * perf and that of the boot run apart by a second in a day or so. The recording is of this boot if
 * its file was written about when it would have ended; the time between both is uncertain. */
void find_set_times(FindOptions *options, const Profile *profile, bool is_of_this_host) {
    uint64_t booted_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME),
             offset = profile->real_known ? profile->real_offset : booted_ns;
    uint64_t apart_ns;

    options->began_ns = profile->first_ns + offset;
    options->ended_ns = profile->last_ns + offset;
    /* Pids from before the boot are those of other processes. */
    options->local_processes = is_of_this_host && options->began_ns + NS_PER_SECOND >= booted_ns;
    options->until_ns = profile->real_known ? options->ended_ns : 0;
    apart_ns = profile->real_known ? 0
                                   : MAX(options->written_ns, options->ended_ns) -
                                         MIN(options->written_ns, options->ended_ns);
    options->unchanged_ns = options->local_processes && apart_ns < WRITING_MAX_NS
                                ? options->began_ns - NS_PER_SECOND - apart_ns
                                : 0;
}

/* -- the mapped file -------------------------------------------------------------------------- */

static uint64_t find_time_ns(struct timespec t) {
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

/*
 * Whether a file without a build id is the mapped one: 0, -ESTALE if it is another one, -ENOENT if
 * that is not known. A device that differs says nothing: another mount namespace has other files
 * at its paths, and file systems in layers have several devices. perf writes no generation for what
 * was mapped before it began, and some file systems have none; but no inode number is given to a
 * new file while its old one is mapped, so a file that has not changed since then is the same.
 * A file that was written after the first sample in it was overwritten in place, perhaps between
 * two samples, which leaves inode and generation as they are.
 */
static int find_check_inode(const FindOptions *options, const FrameMapping *m, int fd) {
    int generation = 0;
    struct stat st;

    if (fstat(fd, &st) < 0 || m->inode == 0 || major(st.st_dev) != m->major ||
        minor(st.st_dev) != m->minor)
        return -ENOENT;
    if (st.st_ino != m->inode ||
        (options->until_ns > 0 && find_time_ns(st.st_mtim) > options->until_ns))
        return -ESTALE;
    if (m->sampled_ns > 0 && find_time_ns(st.st_mtim) > m->sampled_ns)
        return -ENOENT;
    if (ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 && (m->generation != 0 || generation == 0))
        return (uint32_t)generation == (uint32_t)m->generation ? 0 : -ESTALE;
    return find_time_ns(st.st_ctim) < options->unchanged_ns ? 0 : -ENOENT;
}

static bool find_path(const FindOptions *options, Bytes path, char *ret, size_t size) {
    int n;

    if (path.size == 0 || path.data[0] != '/' || memchr(path.data, 0, path.size) ||
        path.size >= size)
        return false;
    n = snprintf(ret, size, "%s%.*s", options->root, (int)path.size, (const char *)path.data);
    return n > 0 && (size_t)n < size;
}

static int find_open(const FindOptions *options, const FrameMapping *m, int *ret_fd,
                     FileIdentity *ret) {
    char path[FIND_PATH_MAX];

    if (!options->local_files || !find_path(options, m->path, path, sizeof(path)))
        return -ENOENT;
    return open_regular(path, ret_fd, ret);
}

int find_look(const FindOptions *options, const FrameMapping *mapping, FileIdentity *ret) {
    _cleanup_close_ int fd = -1;

    return find_open(options, mapping, &fd, ret);
}

int find_mapped(const FindOptions *options, const FrameMapping *m, ElfFile **ret,
                FileIdentity *ret_identity) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    ElfBuildId wanted = find_id_of(m), id;
    FileIdentity identity;
    int fd, r;

    r = find_open(options, m, &fd, &identity);
    if (r < 0)
        return r;
    r = wanted.size == 0 ? find_check_inode(options, m, fd) : 0;
    if (r < 0) {
        closep(&fd);
        return r;
    }
    r = elf_file_new(fd, &file);
    if (r < 0)
        return r == -ENOMEM || wanted.size == 0 ? r : -ESTALE;
    id = elf_file_build_id(file);
    if (wanted.size > 0 && !find_same_id(&wanted, &id))
        return -ESTALE;
    *ret_identity = identity;
    *ret = TAKE_PTR(file);
    return 0;
}

/* The kernel maps its vdso into this process as well. Without a build id it is that of a recording
 * of this boot. */
static int find_vdso(const FindOptions *options, const FrameMapping *m, ElfFile **ret) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    ElfBuildId wanted = find_id_of(m), id;
    int r;

    if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        (wanted.size == 0 && !options->local_processes))
        return -ENOENT;
    r = elf_file_new_in_memory(
        (Bytes){.data = (const uint8_t *)header,
                .size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize},
        &file);
    if (r < 0)
        return r;
    id = elf_file_build_id(file);
    if (wanted.size > 0 && !find_same_id(&wanted, &id))
        return -ENOENT;
    *ret = TAKE_PTR(file);
    return 0;
}

/* -- better files ----------------------------------------------------------------------------- */

/* Takes the file if it is better than what was found before. A file with code may give the
 * segments, too. */
static void find_offer(FindState *state, ElfFile *file, const FileIdentity *identity,
                       bool has_code) {
    ElfNaming naming = elf_naming(file);
    FoundElf *found = state->found;
    bool is_better = naming > state->naming;

    if (is_better)
        state->naming = naming;
    if (has_code && !found->code) {
        found->code = file;
        found->code_identity = *identity;
        return;
    }
    if (!is_better) {
        elf_file_free(file);
        return;
    }
    elf_file_free(found->symbols);
    found->symbols = file;
    found->symbols_identity = *identity;
}

/* Opens a file and offers it if it has the build id. */
static int find_try(FindState *state, int fd, const FileIdentity *identity, bool has_code) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    int r = elf_file_new(fd, &file);
    ElfBuildId id;

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    id = elf_file_build_id(file);
    if (find_same_id(&state->id, &id))
        find_offer(state, TAKE_PTR(file), identity, has_code);
    return 0;
}

static int find_try_path(FindState *state, const char *path, bool has_code) {
    FileIdentity identity;
    int fd;

    return open_regular(path, &fd, &identity) < 0 ? 0 : find_try(state, fd, &identity, has_code);
}

static int find_in_folder(FindState *state, const char *folder, const char *suffix, bool has_code) {
    char path[FIND_PATH_MAX];

    return build_id_path(folder, &state->id, suffix, path) ? find_try_path(state, path, has_code)
                                                           : 0;
}

/* Whether a file with more names would be of use. */
static bool find_is_short(const FindState *state) {
    return state->naming < (state->options->wants_lines ? ELF_NAMES_LINES : ELF_NAMES_WHOLE);
}

static int find_debug_file(FindState *state, const FrameMapping *m) {
    char folder[FIND_PATH_MAX];
    int r = 0;

    if (snprintf(folder, sizeof(folder), "%s/usr/lib/debug", state->options->root) <
            (int)sizeof(folder) &&
        state->id.size > 0)
        r = find_in_folder(state, folder, ".debug", false);
    if (r == 0 && find_is_short(state) && state->found->code) {
        FileIdentity identity;
        ElfFile *file;
        char path[FIND_PATH_MAX];

        if (!find_path(state->options, m->path, path, sizeof(path)))
            return 0;
        r = debug_link_find(state->options->root, path, state->found->code, &file, &identity);
        if (r > 0)
            find_offer(state, file, &identity, false);
    }
    return r < 0 ? r : 0;
}

/* A debug file alone is not enough: it does not say where the code lies in the mapped file. */
static bool find_wants_more(const FindState *state) {
    return state->id.size > 0 && (find_is_short(state) || !state->found->code);
}

static int find_in_caches(FindState *state) {
    static const char *const suffixes[] = {"/elf", "/vdso", "/debug"};
    const FindOptions *o = state->options;
    int r = 0;

    for (size_t i = 0; r == 0 && i < o->n_caches && find_wants_more(state); i++)
        for (size_t j = 0; r == 0 && j < ARRAY_SIZE(suffixes) && find_wants_more(state); j++)
            r = find_in_folder(state, o->caches[i], suffixes[j],
                               strcmp(suffixes[j], "/debug") != 0);
    return r;
}

static int find_fetch(FindState *state) {
    const FindOptions *o = state->options;
    int fd = o->fetch ? o->fetch(state->id.bytes, state->id.size, o->fetch_arg) : -ENOENT;
    FileIdentity nothing = {};

    return fd < 0 ? 0 : find_try(state, fd, &nothing, true);
}

/* The last resort. The program itself is needed if only its debug information is known. */
static int find_on_server(FindState *state) {
    DebugServer *server = state->options->server;
    FileIdentity nothing = {};
    int r = 0;

    for (unsigned program = 0; r == 0 && server && program < 2; program++) {
        int fd = -ENOENT;

        if (program ? !state->found->code : find_is_short(state))
            fd = debug_server_find(server, state->id.bytes, state->id.size, program);
        if (fd >= 0)
            r = find_try(state, fd, &nothing, program);
    }
    return r;
}

int find_elf(const FindOptions *options, const FrameMapping *m, FoundElf *ret) {
    FoundElf found = {};
    FindState state = {.options = options, .id = find_id_of(m), .found = &found};
    int r;

    if (m->kind == FRAME_VDSO && options->local_files)
        r = find_vdso(options, m, &found.code);
    else
        r = find_mapped(options, m, &found.code, &found.code_identity);
    found.is_replaced = r == -ESTALE;
    if (r == 0) {
        state.naming = elf_naming(found.code);
        if (state.id.size == 0)
            state.id = elf_file_build_id(found.code);
    }
    r = r == -ENOMEM ? r : 0;
    if (r == 0 && find_is_short(&state) && options->local_files)
        r = find_debug_file(&state, m);
    if (r == 0)
        r = find_in_caches(&state);
    if (r == 0 && find_wants_more(&state))
        r = find_fetch(&state);
    if (r == 0 && find_wants_more(&state))
        r = find_on_server(&state);
    if (r < 0) {
        found_elf_done(&found);
        return r;
    }
    found.is_stable = (!found.code || found.code_identity.inode > 0) &&
                      (!found.symbols || found.symbols_identity.inode > 0);
    *ret = found;
    return 0;
}

int found_elf_lines(const FoundElf *found) {
    const ElfFile *files[] = {found->symbols, found->code};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (files[i] && elf_naming(files[i]) == ELF_NAMES_LINES)
            return elf_file_fd(files[i]);
    return -1;
}

void found_elf_done(FoundElf *found) {
    found->code = elf_file_free(found->code);
    found->symbols = elf_file_free(found->symbols);
}
