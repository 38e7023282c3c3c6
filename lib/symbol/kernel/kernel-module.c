/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/kernel/kernel-module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "symbol/elf/unpack.h"
#include "symbol/find/build-id-folder.h"
#include "symbol/kernel/kernel-find.h"
#include "symbol/kernel/kernel-symbols.h"

/*
 * A module that is loaded now is listed in kallsyms. It counts if its build id in /sys/module is
 * that of the recording: a module of the same name and address may be another one. Otherwise its
 * file or the separate debug file of the build id has the names. The kernel puts .text of such a
 * file at the begin of the module's code.
 */

enum { MODULE_NAME_MAX = 64, MODULE_PAGE = 4096 };

/* "ext4" of "[ext4]" or of "/lib/modules/…/ext4.ko.xz"; false: it is no module. */
static bool kernel_module_name(Bytes name, char ret[MODULE_NAME_MAX]) {
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

static bool kernel_module_is_loaded(const FindOptions *options, const char *name,
                                    const ElfBuildId *id) {
    char path[FIND_PATH_MAX];
    ElfBuildId loaded;

    if (snprintf(path, sizeof(path), "%s/sys/module/%s/notes/.note.gnu.build-id", options->root,
                 name) >= (int)sizeof(path))
        return false;
    loaded = kernel_find_note(path);
    /* A module that was built without a build id is the same one in the same boot. */
    return id->size == 0 ? loaded.size == 0 && options->local_processes
                         : kernel_find_same_id(id, &loaded);
}

/* Its first function lies in its first page, which may be elsewhere than in the recording. */
static int kernel_module_list(const FindOptions *options, const char *name, const ElfBuildId *id,
                              uint64_t start, NameBuild *build) {
    KernelSymbols wanted = {.module = name};
    char path[FIND_PATH_MAX];
    _cleanup_close_ int fd = -1;
    uint64_t now;
    int r;

    if (snprintf(path, sizeof(path), "%s/proc/kallsyms", options->root) >= (int)sizeof(path))
        return -ENOENT;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    r = fd >= 0 ? kernel_symbols_read(fd, &wanted, build) : -ENOENT;
    if (r == -ENOMEM)
        return r;
    now = wanted.lowest & ~(uint64_t)(MODULE_PAGE - 1);
    if (r < 0 || wanted.lowest == 0 || (id->size == 0 && now != start)) {
        name_build_clear(build);
        return -ENOENT;
    }
    name_build_rebase(build, now);
    return 0;
}

void module_file_done(ModuleFile *file) {
    file->elf = elf_file_free(file->elf);
    buffer_done(&file->unpacked);
}

/* Closes the descriptor, or gives it to `ret`. */
static int kernel_module_take(int fd, ModuleFile *ret) {
    int r = unpack_file(fd, &ret->unpacked);

    if (r == 0)
        return elf_file_new(fd, &ret->elf);
    closep(&fd);
    return r < 0 ? r : elf_file_new_in_memory(buffer_bytes(&ret->unpacked), &ret->elf);
}

/* Closes the descriptor. */
static int kernel_module_read(int fd, const ElfBuildId *id, NameBuild *build, ModuleFile *ret) {
    _cleanup_(module_file_done) ModuleFile file = {};
    int r = kernel_module_take(fd, &file);
    ElfBuildId found;

    if (r < 0)
        return r == -ENOMEM ? r : -ENOENT;
    found = elf_file_build_id(file.elf);
    if (!kernel_find_same_id(id, &found))
        return -ENOENT;
    r = elf_names_add_section(file.elf, ".text", build);
    if (r == 0 && build->n > 0) {
        *ret = file;
        file = (ModuleFile){};
        return 0;
    }
    name_build_clear(build);
    return r == -ENOMEM ? r : -ENOENT;
}

static int kernel_module_read_path(const char *path, const ElfBuildId *id, NameBuild *build,
                                   ModuleFile *ret) {
    FileIdentity identity;
    int fd;

    return open_regular(path, &fd, &identity) < 0 ? -ENOENT
                                                  : kernel_module_read(fd, id, build, ret);
}

static int kernel_module_read_folder(const char *folder, const ElfBuildId *id, const char *suffix,
                                     NameBuild *build, ModuleFile *ret) {
    char path[FIND_PATH_MAX];

    return build_id_path(folder, id, suffix, path) ? kernel_module_read_path(path, id, build, ret)
                                                   : -ENOENT;
}

/* The file at the path of the mapping, also a compressed one, and separate debug files. */
static int kernel_module_local(const FindOptions *options, Bytes name, const ElfBuildId *id,
                               NameBuild *build, ModuleFile *ret) {
    char path[FIND_PATH_MAX];
    int r = -ENOENT;

    if (name.size > 0 && name.data[0] == '/' && !memchr(name.data, 0, name.size) &&
        snprintf(path, sizeof(path), "%s%.*s", options->root, (int)MIN(name.size, sizeof(path)),
                 (const char *)name.data) < (int)sizeof(path))
        r = kernel_module_read_path(path, id, build, ret);
    if (r == -ENOENT &&
        snprintf(path, sizeof(path), "%s/usr/lib/debug", options->root) < (int)sizeof(path))
        r = kernel_module_read_folder(path, id, ".debug", build, ret);
    return r;
}

static int kernel_module_files(const FindOptions *options, Bytes name, const ElfBuildId *id,
                               NameBuild *build, ModuleFile *ret) {
    static const char *const suffixes[] = {"/elf", "/debug"};
    int r = -ENOENT, fd;

    if (options->local_files)
        r = kernel_module_local(options, name, id, build, ret);
    for (size_t i = 0; r == -ENOENT && i < options->n_caches; i++)
        for (size_t k = 0; r == -ENOENT && k < ARRAY_SIZE(suffixes); k++)
            r = kernel_module_read_folder(options->caches[i], id, suffixes[k], build, ret);
    if (r == -ENOENT && options->server) {
        fd = debug_server_find(options->server, id->bytes, id->size, false);
        r = fd < 0 ? -ENOENT : kernel_module_read(fd, id, build, ret);
    }
    return r;
}

int kernel_module_find(const FindOptions *options, const FrameMapping *m, NameBuild *build) {
    _cleanup_(module_file_done) ModuleFile file = {};
    ElfBuildId id = {.size = m->build_id_size};
    char name[MODULE_NAME_MAX];
    int r = -ENOENT;

    memcpy(id.bytes, m->build_id, sizeof(id.bytes));
    if (m->start == 0 || !kernel_module_name(m->path, name))
        return -ENOENT;
    if (options->local_files && kernel_module_is_loaded(options, name, &id))
        r = kernel_module_list(options, name, &id, m->start, build);
    return r == -ENOENT && id.size > 0 ? kernel_module_files(options, m->path, &id, build, &file)
                                       : r;
}

int kernel_module_open(const FindOptions *options, const FrameMapping *m, ModuleFile *ret) {
    _cleanup_(name_build_done) NameBuild names;
    ElfBuildId id = {.size = m->build_id_size};

    name_build_init(&names, NAME_BY_START);
    memcpy(id.bytes, m->build_id, sizeof(id.bytes));
    return id.size > 0 ? kernel_module_files(options, m->path, &id, &names, ret) : -ENOENT;
}
