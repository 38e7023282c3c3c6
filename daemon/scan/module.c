/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/module.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "scan/text/line.h"
#include "util/array.h"
#include "util/file.h"

/*
 * "NAME SIZE USERS DEPENDENTS STATE 0xADDRESS": the size is that of all memory of a module,
 * although newer kernels place its code and data separately, so a module may claim more than its
 * code; it is cut where the next one begins. Paths come from modules.dep, which modprobe uses too:
 * one file instead of a walk through thousands. A file has the module's name, with dashes instead
 * of underscores in places, and may be compressed.
 */

enum { NOTES_SIZE = 16 << 10 };

static int module_by_address(const void *a, const void *b) {
    uint64_t x = ((const Module *)a)->start, y = ((const Module *)b)->start;

    return x < y ? -1 : x > y;
}

static int module_by_name(const void *a, const void *b) {
    return strcmp((*(Module *const *)a)->name, (*(Module *const *)b)->name);
}

/* Whether the name is safe in a path below sysfs. */
static bool module_is_name(const char *name) {
    return name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

static bool module_parse(const char *line, Module *ret) {
    const char *address = strstr(line, " 0x");
    Module m = {};

    if (!address || sscanf(line, "%63s %" SCNu64, m.name, &m.length) != 2 ||
        sscanf(address, " %" SCNx64, &m.start) != 1 || !module_is_name(m.name))
        return false;
    if (m.start == 0 || m.length == 0 || m.length > UINT64_MAX - m.start)
        return false;
    *ret = m;
    return true;
}

int modules_read(int fd, Modules *ret) {
    _cleanup_free_ LineReader *lines = malloc(sizeof(*lines));
    int r = 0, more = 0;
    size_t size;
    char *line;

    if (!lines)
        return -ENOMEM;
    line_reader_init(lines, fd);
    while (r == 0 && ret->n < MODULES_MAX && (more = line_reader_next(lines, &line, &size)) > 0) {
        Module module, *slot = NULL;

        if (!module_parse(line, &module))
            continue;
        slot = array_grow(&ret->items, &ret->n);
        if (slot)
            *slot = module;
        r = slot ? 0 : -ENOMEM;
    }
    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), module_by_address);
    for (size_t i = 0; i + 1 < ret->n; i++)
        ret->items[i].length =
            MIN(ret->items[i].length, ret->items[i + 1].start - ret->items[i].start);
    return r < 0 ? r : more < 0 ? more : 0;
}

/* These notes are in memory, from the kernel itself or a module that root has loaded, so no file
 * system can block and no user chooses the bytes; they are bounded and checked all the same. */
int sysfs_build_id(const char *path, BuildId *ret) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t notes[NOTES_SIZE];
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, notes, sizeof(notes));
    if (n < 0)
        return -errno;
    return elf_notes_build_id((Bytes){.data = notes, .size = (size_t)n}, 4, false, ret);
}

/* The name of a module from its path; false if it is not a module. */
static bool module_name_of_path(const char *path, size_t size, char ret[MODULE_NAME_MAX + 1]) {
    const char *slash = memrchr(path, '/', size), *base = slash ? slash + 1 : path;
    const char *suffix = memmem(base, (size_t)(path + size - base), ".ko", 3);
    size_t n = suffix ? (size_t)(suffix - base) : 0;

    if (n == 0 || n > MODULE_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = base[i] == '-' ? '_' : base[i];
    ret[n] = '\0';
    return true;
}

static int module_note_path(Module *const *sorted, size_t n, const char *folder, const char *line) {
    Module key, *const wanted = &key, *const * found;
    const char *colon = strchr(line, ':');

    if (!colon || !module_name_of_path(line, (size_t)(colon - line), key.name))
        return 0;
    found = bsearch(&wanted, sorted, n, sizeof(*sorted), module_by_name);
    if (!found || (*found)->path)
        return 0;
    if (asprintf(&(*found)->path, "%s%.*s", line[0] == '/' ? "" : folder, (int)(colon - line),
                 line) < 0) {
        (*found)->path = NULL;
        return -ENOMEM;
    }
    return 0;
}

static int module_find_paths(const char *root, Module *const *sorted, size_t n) {
    _cleanup_free_ LineReader *lines = malloc(sizeof(*lines));
    char path[PATH_MAX], release[128], folder[sizeof(release) + 16];
    _cleanup_close_ int fd = -1;
    int r = 0, more;
    size_t size;
    char *line;

    if (!lines)
        return -ENOMEM;
    snprintf(path, sizeof(path), "%s/proc/sys/kernel/osrelease", root);
    r = file_read_text(path, release, sizeof(release));
    if (r < 0)
        return r;
    snprintf(folder, sizeof(folder), "/lib/modules/%s/", release);
    snprintf(path, sizeof(path), "%s%smodules.dep", root, folder);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    line_reader_init(lines, fd);
    for (r = 0; r == 0 && (more = line_reader_next(lines, &line, &size)) != 0;)
        r = more < 0 ? more : module_note_path(sorted, n, folder, line);
    return r;
}

static void module_find_build_ids(const char *root, Modules *modules) {
    char path[PATH_MAX];

    for (size_t i = 0; i < modules->n; i++) {
        snprintf(path, sizeof(path), "%s/sys/module/%s/notes/.note.gnu.build-id", root,
                 modules->items[i].name);
        (void)sysfs_build_id(path, &modules->items[i].build_id);
    }
}

int modules_identify(const char *root, Modules *modules) {
    _cleanup_free_ Module **sorted = NULL;

    if (modules->n == 0)
        return 0;
    module_find_build_ids(root, modules);
    sorted = calloc(modules->n, sizeof(Module *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < modules->n; i++)
        sorted[i] = &modules->items[i];
    qsort(sorted, modules->n, sizeof(Module *), module_by_name);
    return module_find_paths(root, sorted, modules->n);
}

void modules_done(Modules *modules) {
    for (size_t i = 0; i < modules->n; i++)
        free(modules->items[i].path);
    free(modules->items);
    *modules = (Modules){};
}
