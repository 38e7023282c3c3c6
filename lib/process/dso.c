/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/dso.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "util/macro.h"

/*
 * perf names a file by its path, generated code by the file in which a JIT would write its symbols
 * (/tmp/perf-PID.map), and a module by its bare name in brackets. These rules are those of perf's
 * map.c and dso.c, and were compared with its output.
 */

static bool dso_starts(Bytes text, const char *with) {
    size_t n = strlen(with);

    return text.size >= n && memcmp(text.data, with, n) == 0;
}

static bool dso_is_anonymous(const PdMmap *mmap) {
    return bytes_equal_str(mmap->filename, "//anon") || dso_starts(mmap->filename, "/dev/zero") ||
           dso_starts(mmap->filename, "/anon_hugepage") || (mmap->flags & MAP_HUGETLB);
}

static bool dso_is_no_file(const PdMmap *mmap) {
    return dso_starts(mmap->filename, "[stack") || dso_starts(mmap->filename, "/SYSV") ||
           bytes_equal_str(mmap->filename, "[heap]");
}

Bytes dso_user_name(const PdMmap *mmap, bool executable, char scratch[DSO_NAME_MAX]) {
    int n;

    if (executable && mmap->pid != 0 && (dso_is_anonymous(mmap) || dso_is_no_file(mmap))) {
        n = snprintf(scratch, DSO_NAME_MAX, "/tmp/perf-%" PRIi32 ".map", (int32_t)mmap->pid);
        return (Bytes){.data = (const uint8_t *)scratch, .size = (size_t)n};
    }
    return mmap->filename;
}

DsoKernelKind dso_kernel_kind(Bytes filename) {
    if (dso_starts(filename, "[kernel.kallsyms"))
        return DSO_KERNEL;
    return dso_starts(filename, "/") || dso_starts(filename, "[") ? DSO_MODULE : DSO_KERNEL_EXTRA;
}

static Bytes dso_last_part(Bytes path) {
    const uint8_t *slash = path.size > 0 ? memrchr(path.data, '/', path.size) : NULL;
    size_t before = slash ? (size_t)(slash + 1 - path.data) : 0;

    return before > 0 ? (Bytes){.data = path.data + before, .size = path.size - before} : path;
}

static bool dso_cut_end(Bytes *text, const char *end) {
    size_t n = strlen(end);

    if (text->size <= n || memcmp(text->data + text->size - n, end, n) != 0)
        return false;
    text->size -= n;
    return true;
}

/* Reduces the path of a module's file to its bare name; false when it is not a module. */
static bool dso_module_base(Bytes *name) {
    static const char *const compressions[] = {".gz", ".xz", ".zst"};
    Bytes base = *name;

    for (size_t i = 0; i < ARRAY_SIZE(compressions); i++)
        if (dso_cut_end(&base, compressions[i]))
            break;
    if (!dso_cut_end(&base, ".ko"))
        return false;
    *name = base;
    return true;
}

bool dso_is_module(Bytes filename) {
    static const char *const others[] = {
        "[kernel.kallsyms]", "[guest.kernel.kallsyms", "[vdso]", "[vdso32]", "[vdsox32]",
        "[vsyscall]"};
    Bytes name = dso_last_part(filename);

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (dso_starts(name, others[i]))
            return false;
    return dso_starts(name, "[") || dso_module_base(&name);
}

Bytes dso_module_name(Bytes filename, char scratch[DSO_NAME_MAX]) {
    Bytes name = dso_last_part(filename);
    bool module;
    size_t n = 0;

    if (dso_starts(name, "[") || name.size == 0 || !memchr(name.data, '.', name.size))
        return name;
    module = dso_module_base(&name);
    name.size = MIN(name.size, (size_t)DSO_NAME_MAX - 2);
    if (module)
        scratch[n++] = '[';
    for (size_t i = 0; i < name.size; i++)
        scratch[n++] = name.data[i] == '-' ? '_' : (char)name.data[i];
    if (module)
        scratch[n++] = ']';
    return (Bytes){.data = (const uint8_t *)scratch, .size = n};
}
