/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/kernel/kernel-find.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "symbol/find/build-id-folder.h"
#include "symbol/kernel/kernel-symbols.h"

/*
 * The running kernel lists its own symbols, unless kptr_restrict hides the addresses. Copies of
 * such lists are in the caches by build id, and a vmlinux with symbols may be installed. Whichever
 * is taken has the build id of the recording's kernel. perf, and profd, count from _text where that
 * is a function, and else from _stext, which lies 64 KiB behind it on arm64.
 */

bool kernel_find_same_id(const ElfBuildId *a, const ElfBuildId *b) {
    return a->size > 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

ElfBuildId kernel_find_note(const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t notes[4096];
    ElfBuildId id = {};
    ssize_t n = fd >= 0 ? read(fd, notes, sizeof(notes)) : -1;

    if (n > 0)
        (void)elf_notes_find_id((Bytes){.data = notes, .size = (size_t)n}, 4, false, &id);
    return id;
}

/* The build id of the kernel that runs here. */
static ElfBuildId kernel_find_running(const FindOptions *options) {
    char path[FIND_PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/sys/kernel/notes", options->root) >= (int)sizeof(path))
        return (ElfBuildId){};
    return kernel_find_note(path);
}

/* Reads a list of symbols and counts their addresses from the reference; closes it. */
static int kernel_find_list_fd(int list, const char *reference, NameBuild *build) {
    KernelSymbols wanted = {.reference = reference};
    _cleanup_close_ int fd = list;
    int r;

    if (fd < 0)
        return -ENOENT;
    r = kernel_symbols_read(fd, &wanted, build);
    if (r == -ENOMEM)
        return r;
    if (wanted.base == 0) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, wanted.base);
    return 0;
}

static int kernel_find_list(const char *path, const char *reference, NameBuild *build) {
    return kernel_find_list_fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), reference, build);
}

static int kernel_find_vmlinux(const ElfBuildId *id, const char *path, const char *reference,
                               NameBuild *build) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    FileIdentity identity;
    ElfBuildId found;
    uint64_t base;
    int fd, r;

    if (open_regular(path, &fd, &identity) < 0)
        return -ENOENT;
    r = elf_file_new(fd, &file);
    if (r < 0)
        return r == -ENOMEM ? r : -ENOENT;
    found = elf_file_build_id(file);
    if (!kernel_find_same_id(id, &found) || elf_naming(file) != ELF_NAMES_WHOLE)
        return -ENOENT;
    r = elf_names_add(file, build);
    if (r == -ENOMEM)
        return r;
    if (r < 0 || !name_build_find(build, reference, &base)) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, base);
    return 0;
}

static int kernel_find_installed(const FindOptions *options, const ElfBuildId *id,
                                 const char *reference, NameBuild *build) {
    static const char *const paths[][2] = {{"/usr/lib/debug/boot/vmlinux-", ""},
                                           {"/usr/lib/debug/lib/modules/", "/vmlinux"},
                                           {"/boot/vmlinux-", ""},
                                           {"/lib/modules/", "/build/vmlinux"}};
    char path[FIND_PATH_MAX], folder[FIND_PATH_MAX];
    struct utsname host;
    int n, r = -ENOENT;

    n = snprintf(folder, sizeof(folder), "%s/usr/lib/debug", options->root);
    if (n < (int)sizeof(folder) && build_id_path(folder, id, ".debug", path))
        r = kernel_find_vmlinux(id, path, reference, build);
    for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(paths) && uname(&host) == 0; i++) {
        n = snprintf(path, sizeof(path), "%s%s%s%s", options->root, paths[i][0], host.release,
                     paths[i][1]);
        if (n < (int)sizeof(path))
            r = kernel_find_vmlinux(id, path, reference, build);
    }
    return r;
}

int kernel_find(const FindOptions *options, const ElfBuildId *id, const char *reference,
                NameBuild *build) {
    char path[FIND_PATH_MAX];
    ElfBuildId running;
    int r = -ENOENT;

    if (id->size == 0)
        return -ENOENT;
    if (options->local_files) {
        running = kernel_find_running(options);
        if (kernel_find_same_id(id, &running) &&
            snprintf(path, sizeof(path), "%s/proc/kallsyms", options->root) < (int)sizeof(path))
            r = kernel_find_list(path, reference, build);
    }
    for (size_t i = 0; r == -ENOENT && i < options->n_caches; i++)
        if (build_id_path(options->caches[i], id, "/kallsyms", path))
            r = kernel_find_list(path, reference, build);
    if (r == -ENOENT && options->fetch)
        r = kernel_find_list_fd(options->fetch(id->bytes, id->size, options->fetch_arg), reference,
                                build);
    if (r == -ENOENT && options->local_files)
        r = kernel_find_installed(options, id, reference, build);
    return r;
}
