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
 * is taken has the build id of the recording's kernel.
 */

enum { MODULE_NAME_MAX = 64, MODULE_PAGE = 4096 };

static bool kernel_find_same_id(const ElfBuildId *a, const ElfBuildId *b) {
    return a->size > 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* The build id of the kernel that runs here. */
static ElfBuildId kernel_find_running(const FindOptions *options) {
    char path[FIND_PATH_MAX];
    uint8_t notes[4096];
    ElfBuildId id = {};
    ssize_t n = -1;
    int fd;

    if (snprintf(path, sizeof(path), "%s/sys/kernel/notes", options->root) < (int)sizeof(path)) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, notes, sizeof(notes)) : -1;
        closep(&fd);
    }
    if (n > 0)
        (void)elf_notes_find_id((Bytes){.data = notes, .size = (size_t)n}, 4, false, &id);
    return id;
}

/* Reads a list of symbols and counts their addresses from _text. */
static int kernel_find_list(const char *path, NameBuild *build) {
    KernelSymbols wanted = {};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int r;

    if (fd < 0)
        return -ENOENT;
    r = kernel_symbols_read(fd, &wanted, build);
    if (r == -ENOMEM)
        return r;
    if (wanted.text == 0) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, wanted.text);
    return 0;
}

static int kernel_find_vmlinux(const ElfBuildId *id, const char *path, NameBuild *build) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    FileIdentity identity;
    ElfBuildId found;
    uint64_t text;
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
    if (r < 0 || !name_build_find(build, "_text", &text)) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, text);
    return 0;
}

static int kernel_find_installed(const FindOptions *options, const ElfBuildId *id,
                                 NameBuild *build) {
    static const char *const paths[][2] = {{"/usr/lib/debug/boot/vmlinux-", ""},
                                           {"/usr/lib/debug/lib/modules/", "/vmlinux"},
                                           {"/boot/vmlinux-", ""},
                                           {"/lib/modules/", "/build/vmlinux"}};
    char path[FIND_PATH_MAX], folder[FIND_PATH_MAX];
    struct utsname host;
    int n, r = -ENOENT;

    n = snprintf(folder, sizeof(folder), "%s/usr/lib/debug", options->root);
    if (n < (int)sizeof(folder) && build_id_path(folder, id, ".debug", path))
        r = kernel_find_vmlinux(id, path, build);
    for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(paths) && uname(&host) == 0; i++) {
        n = snprintf(path, sizeof(path), "%s%s%s%s", options->root, paths[i][0], host.release,
                     paths[i][1]);
        if (n < (int)sizeof(path))
            r = kernel_find_vmlinux(id, path, build);
    }
    return r;
}

int kernel_find(const FindOptions *options, const ElfBuildId *id, NameBuild *build) {
    char path[FIND_PATH_MAX];
    ElfBuildId running;
    int r = -ENOENT;

    if (id->size == 0)
        return -ENOENT;
    if (options->local_files) {
        running = kernel_find_running(options);
        if (kernel_find_same_id(id, &running) &&
            snprintf(path, sizeof(path), "%s/proc/kallsyms", options->root) < (int)sizeof(path))
            r = kernel_find_list(path, build);
    }
    for (size_t i = 0; r == -ENOENT && i < options->n_caches; i++)
        if (build_id_path(options->caches[i], id, "/kallsyms", path))
            r = kernel_find_list(path, build);
    if (r == -ENOENT && options->local_files)
        r = kernel_find_installed(options, id, build);
    return r;
}

/* "ext4" of "[ext4]" or of "/lib/modules/…/ext4.ko.xz"; false: it is no module. */
static bool kernel_find_module_name(Bytes name, char ret[MODULE_NAME_MAX]) {
    const uint8_t *slash = name.size > 0 ? memrchr(name.data, '/', name.size) : NULL;
    const uint8_t *at = slash ? slash + 1 : name.data, *end = name.data + name.size;
    size_t n = 0;

    if (at < end && *at == '[')
        at++;
    for (; at < end && *at != ']' && *at != '.' && n + 1 < MODULE_NAME_MAX; at++)
        ret[n++] = *at == '-' ? '_' : (char)*at;
    ret[n] = '\0';
    return n > 0;
}

int kernel_find_module(const FindOptions *options, Bytes name, uint64_t start, NameBuild *build) {
    char path[FIND_PATH_MAX], module[MODULE_NAME_MAX];
    KernelSymbols wanted = {.module = module};
    _cleanup_close_ int fd = -1;
    int r;

    if (!options->local_files || !options->local_processes || start == 0 ||
        !kernel_find_module_name(name, module) ||
        snprintf(path, sizeof(path), "%s/proc/kallsyms", options->root) >= (int)sizeof(path))
        return -ENOENT;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    r = fd >= 0 ? kernel_symbols_read(fd, &wanted, build) : -ENOENT;
    if (r == -ENOMEM)
        return r;
    /* Its first function lies in its first page. */
    if (r < 0 || wanted.lowest < start || wanted.lowest - start >= MODULE_PAGE) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, start);
    return 0;
}
