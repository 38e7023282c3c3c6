/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-unwind.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/text-set.h"
#include "symbol/find/find.h"
#include "unwind/compile/unwind-compile.h"
#include "util/array.h"

/*
 * A table is made of the very file that was mapped, by its build id. root does not parse the unwind
 * information of files that others could have written.
 */

typedef struct UnwindFile {
    Buffer image; /* what the table is a view of */
    UnwindTable table;
    int result; /* 0, or why there is no table */
} UnwindFile;

struct ViewUnwind {
    TextSet *names; /* path and build id of each file, from number 1 on */
    UnwindFile **files;
    size_t n;
};

ViewUnwind *view_unwind_free(ViewUnwind *unwind) {
    if (!unwind)
        return NULL;
    for (size_t i = 0; i < unwind->n; i++) {
        if (unwind->files[i])
            buffer_done(&unwind->files[i]->image);
        free(unwind->files[i]);
    }
    free(unwind->files);
    text_set_free(unwind->names);
    free(unwind);
    return NULL;
}

int view_unwind_new(ViewUnwind **ret) {
    ViewUnwind *unwind = calloc(1, sizeof(*unwind));
    int r = unwind ? text_set_new(&unwind->names) : -ENOMEM;

    if (r < 0) {
        free(unwind);
        return r;
    }
    *ret = unwind;
    return 0;
}

static bool view_unwind_is_trusted(int fd) {
    struct stat st;

    return geteuid() != 0 ||
           (fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

static int view_unwind_read(const FrameMapping *mapping, UnwindFile *file) {
    const FindOptions options = {.root = "", .local_files = true};
    _cleanup_(elf_file_freep) ElfFile *elf = NULL;
    FileIdentity identity;
    int r = find_mapped(&options, mapping, &elf, &identity);

    if (r < 0)
        return r;
    if (elf_file_fd(elf) < 0 || !view_unwind_is_trusted(elf_file_fd(elf)))
        return -EPERM;
    r = unwind_compile_fd(elf_file_fd(elf), &file->image);
    return r < 0 ? r : unwind_table_open(buffer_bytes(&file->image), &file->table);
}

static int view_unwind_number(ViewUnwind *unwind, const FrameMapping *mapping, uint32_t *ret) {
    _cleanup_(buffer_done) Buffer name = {};

    buffer_append(&name, mapping->path.data, mapping->path.size);
    buffer_append(&name, mapping->build_id, mapping->build_id_size);
    buffer_u64(&name, mapping->inode, false);
    return buffer_error(&name) ?: text_set_add(unwind->names, buffer_bytes(&name), ret);
}

int view_unwind_table(const FrameMapping *mapping, const UnwindTable **ret, void *arg) {
    ViewUnwind *unwind = arg;
    UnwindFile *file;
    uint32_t number;
    int r = view_unwind_number(unwind, mapping, &number);

    while (r >= 0 && unwind->n <= number)
        if (!array_grow(&unwind->files, &unwind->n))
            r = -ENOMEM;
    if (r < 0)
        return r;
    file = unwind->files[number];
    if (!file) {
        file = unwind->files[number] = calloc(1, sizeof(*file));
        if (!file)
            return -ENOMEM;
        file->result = view_unwind_read(mapping, file);
    }
    *ret = &file->table;
    return file->result;
}
