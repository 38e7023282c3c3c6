/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view-unwind.h"

#include <errno.h>
#include <unistd.h>

#include "profile/text-set.h"
#include "symbol/child/child-ask.h"
#include "symbol/find/find.h"
#include "unwind/compile/unwind-compile.h"
#include "util/array.h"
#include "util/file.h"

/*
 * A table is made of the very file that was mapped, by its build id. For root a child without any
 * right makes it, since others may have written the file; a table that makes no sense gives wrong
 * chains and does no harm.
 */

enum { SECONDS_MAX = 20, IMAGE_MAX = 64 << 20 };

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

static void view_unwind_write_table(const int fds[2], int to, const void *arg _unused_) {
    _cleanup_(buffer_done) Buffer image = {};

    if (unwind_compile_fd(fds[0], &image) == 0)
        (void)file_write_all(to, image.data, image.size);
}

static int view_unwind_compile(int fd, Buffer *ret) {
    return geteuid() != 0 ? unwind_compile_fd(fd, ret)
                          : child_ask(&(ChildWork){.fds = {fd, -1},
                                                   .run = view_unwind_write_table,
                                                   .seconds_max = SECONDS_MAX,
                                                   .reply_max = IMAGE_MAX},
                                      ret);
}

static int view_unwind_read(const FrameMapping *mapping, UnwindFile *file) {
    const FindOptions options = {.root = "", .local_files = true};
    _cleanup_(elf_file_freep) ElfFile *elf = NULL;
    FileIdentity identity;
    int r = find_mapped(&options, mapping, &elf, &identity);

    if (r < 0)
        return r;
    if (elf_file_fd(elf) < 0)
        return -ENODATA;
    r = view_unwind_compile(elf_file_fd(elf), &file->image);
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
